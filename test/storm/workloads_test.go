// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

const (
	namespace = "ns"
	zone      = "zone"
	rack      = "rack"
	// kindLabel on a pod names its entry of kinds.
	kindLabel = "kind"
)

// kinds are the pods there are, as they differ from a plain one. All of them are
// placed by the tree; odd says that not each of them has a node hint.
var kinds = map[string]struct {
	make func(*st.PodWrapper)
	odd  bool
}{
	"plain":  {make: func(*st.PodWrapper) {}},
	"spread": {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "spread=zone,spread=rack") }},
	"pack":   {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "pack=zone,spread=rack") }},
	"weighted": {make: func(p *st.PodWrapper) {
		p.Annotation(clusterview.PlacementAnnotation, "spread=zone;weight.a=3;weight.*=1")
	}},
	"excluding": {make: func(p *st.PodWrapper) {
		p.Annotation(clusterview.PlacementAnnotation, "spread=rack;nodesWithoutKey=Exclude")
	}},
	"malformed":  {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "spread=") }},
	"limited":    {make: func(p *st.PodWrapper) { p.Annotation(clusterview.DomainLimitsAnnotation, "rack=2,node.name=1") }},
	"port":       {make: func(p *st.PodWrapper) { p.HostPort(8080) }},
	"other port": {make: func(p *st.PodWrapper) { p.HostPort(9090) }},
	"disk":       {make: func(p *st.PodWrapper) { p.Annotation(clusterview.ConstraintsAnnotation, "node.labels.disk==ssd") }},
	"arm":        {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlatformsAnnotation, "linux/arm64") }},
	"selective":  {make: func(p *st.PodWrapper) { p.NodeSelector(map[string]string{"disk": "ssd"}) }},
	"tolerant":   {make: func(p *st.PodWrapper) { p.Toleration("storm") }},
	"large":      {make: func(p *st.PodWrapper) { p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "3"}) }},
	"urgent": {make: func(p *st.PodWrapper) {
		p.Priority(100).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "2"})
	}},
	"handled": {make: func(p *st.PodWrapper) { p.Obj().Spec.RuntimeClassName = new("sandboxed") }},
	"soft": {make: func(p *st.PodWrapper) {
		p.SpreadConstraint(1, zone, corev1.ScheduleAnyway, alike(p), nil, nil, nil, nil)
	}},
	"hard": {make: func(p *st.PodWrapper) {
		p.SpreadConstraint(2, zone, corev1.DoNotSchedule, alike(p), nil, nil, nil, nil)
	}},
	"apart": {make: func(p *st.PodWrapper) {
		p.PodAntiAffinity(corev1.LabelHostname, alike(p), st.PodAntiAffinityWithRequiredReq)
	}},
	"near": {odd: true, make: func(p *st.PodWrapper) {
		p.PodAffinity(zone, alike(p), st.PodAffinityWithPreferredReq)
	}},
}

func alike(p *st.PodWrapper) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Obj().Labels["app"]}}
}

// podOf is a pod of a kind, of the ReplicaSet of an app, or of a workload of its own
// name where there is none.
func podOf(name, kind, app, scheduler string, of *appsv1.ReplicaSet) *corev1.Pod {
	p := st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName(scheduler).
		Label("app", app).Label(kindLabel, kind).Container("image").Phase(corev1.PodPending)
	kinds[kind].make(p)
	pod := p.Obj()
	if len(pod.Spec.Containers[0].Resources.Requests) == 0 {
		p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100m"})
	}
	if of == nil {
		pod.Labels[clusterview.WorkloadLabel] = app
		return pod
	}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = of.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	return pod
}

// replicaSet is one of a Deployment.
func replicaSet(app, name, revision string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name),
		Labels:          map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: revision},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: app, UID: types.UID(app), Controller: new(true)}},
	}}
}
