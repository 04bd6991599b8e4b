// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// maxTaints bounds the taints that are tried: clusters have few, but each node may have its own.
const maxTaints = 20

// attempt is a pod with one thing changed.
type attempt struct {
	change string
	pod    *corev1.Pod
}

// changes are the single changes of a pod that are tried: what it asks for, one after the other. Refused are the reasons of each node.
func changes(s *snapshot.Snapshot, pod *corev1.Pod, refused map[string][]string) []attempt {
	var all []attempt
	try := func(change string, do func(*corev1.Pod)) {
		p := pod.DeepCopy()
		do(p)
		all = append(all, attempt{change, p})
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		try(fmt.Sprintf("remove %s=%s from nodeSelector", key, pod.Spec.NodeSelector[key]), func(p *corev1.Pod) { delete(p.Spec.NodeSelector, key) })
	}
	if a := pod.Spec.Affinity; a != nil {
		if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			try("remove the required node affinity", func(p *corev1.Pod) {
				p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			})
		}
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			try("remove the required pod affinity", func(p *corev1.Pod) { p.Spec.Affinity.PodAffinity = nil })
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			try("remove the required pod anti-affinity", func(p *corev1.Pod) { p.Spec.Affinity.PodAntiAffinity = nil })
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		if c := &pod.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			try(fmt.Sprintf("make the constraint over %s ScheduleAnyway", c.TopologyKey), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
			})
		}
	}
	for _, key := range []string{clusterview.PlacementAnnotation, clusterview.ConstraintsAnnotation, clusterview.PlatformsAnnotation, clusterview.DomainLimitsAnnotation, clusterview.LeaseAnnotation} {
		if _, there := pod.Annotations[key]; there {
			try("remove the annotation "+key, func(p *corev1.Pod) { delete(p.Annotations, key) })
		}
	}
	for _, taint := range taintsOf(s) {
		try(fmt.Sprintf("tolerate the taint %s", taint.ToString()), func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
		})
	}
	if ports := clusterview.HostPorts(pod); len(ports) > 0 {
		try("remove its host ports", func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].Ports = nil
			}
			for i := range p.Spec.InitContainers {
				p.Spec.InitContainers[i].Ports = nil
			}
		})
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		only := "Insufficient " + string(name)
		lacks := func(node string) bool { return slices.Equal(refused[node], []string{only}) }
		wanted := requests[name]
		if most := mostFree(s, name, lacks); most.Sign() > 0 && inContainers(pod, name).Cmp(wanted) == 0 {
			try(fmt.Sprintf("request %s of %s in place of %s", most.String(), name, wanted.String()), func(p *corev1.Pod) { request(p, name, most) })
		}
	}
	return all
}

// inContainers is what the containers of a pod request themselves. Where the pod's request is another, as with init containers, to change
// theirs is not to change it.
func inContainers(pod *corev1.Pod, name corev1.ResourceName) *resource.Quantity {
	var sum resource.Quantity
	for i := range pod.Spec.Containers {
		sum.Add(pod.Spec.Containers[i].Resources.Requests[name])
	}
	return &sum
}

// taintsOf are the taints that keep pods off nodes.
func taintsOf(s *snapshot.Snapshot) []corev1.Taint {
	var all []corev1.Taint
	for _, n := range snapshot.Of[*corev1.Node](s) {
		for _, t := range n.Spec.Taints {
			t.TimeAdded = nil
			if t.Effect != corev1.TaintEffectPreferNoSchedule && len(all) < maxTaints && !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// mostFree is the most that one of some nodes has free of a resource.
func mostFree(s *snapshot.Snapshot, name corev1.ResourceName, of func(node string) bool) (most resource.Quantity) {
	free := make(map[string]resource.Quantity)
	for _, n := range snapshot.Of[*corev1.Node](s) {
		if of(n.Name) {
			free[n.Name] = n.Status.Allocatable[name].DeepCopy()
		}
	}
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		left, on := free[p.Spec.NodeName]
		if !on || ended(p) {
			continue
		}
		left.Sub(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[name])
		free[p.Spec.NodeName] = left
	}
	for _, q := range free {
		if q.Cmp(most) > 0 {
			most = q
		}
	}
	return most
}

// request has a pod request so much, in its first container alone.
func request(p *corev1.Pod, name corev1.ResourceName, q resource.Quantity) {
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		delete(r.Requests, name)
		if i == 0 {
			if r.Requests == nil {
				r.Requests = make(corev1.ResourceList)
			}
			r.Requests[name] = q
		}
	}
}
