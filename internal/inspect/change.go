// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Change is what becomes of the nodes before pods are placed.
type Change struct {
	// Cordon and Drain name nodes. The pods of a drained node are placed anew, but those of DaemonSets and static ones.
	Cordon, Drain []string
	Add           []AddNodes
}

// AddNodes are nodes to come.
type AddNodes struct {
	Count int
	// Like names the node of which they are copies, without its pods.
	Like string
	// Labels are those that differ.
	Labels map[string]string
}

// apply returns a snapshot in which the nodes have changed, and the pods that have lost their node by it: those that a controller makes
// anew, of whatever scheduler. Those without a controller are gone, and counted.
func (c Change) apply(s *snapshot.Snapshot) (changed *snapshot.Snapshot, homeless []*corev1.Pod, gone int, err error) {
	nodes := make(map[string]*corev1.Node)
	for _, n := range snapshot.Of[*corev1.Node](s) {
		nodes[n.Name] = n
	}
	for _, name := range slices.Concat(c.Cordon, c.Drain) {
		if nodes[name] == nil {
			return nil, nil, 0, fmt.Errorf("there is no node %q", name)
		}
	}
	of := *s
	changed = &of
	changed.Objects = make([]runtime.Object, 0, len(s.Objects))
	for _, o := range s.Objects {
		switch o := o.(type) {
		case *corev1.Node:
			if slices.Contains(c.Cordon, o.Name) || slices.Contains(c.Drain, o.Name) {
				changed.Objects = append(changed.Objects, cordoned(o))
				continue
			}
		case *corev1.Pod:
			if slices.Contains(c.Drain, o.Spec.NodeName) && !ended(o) && !clusterview.Daemon(o) {
				switch {
				case o.DeletionTimestamp != nil:
				case metav1.GetControllerOfNoCopy(o) != nil:
					homeless = append(homeless, replacement(o))
				default:
					gone++
				}
				continue
			}
		}
		changed.Objects = append(changed.Objects, o)
	}
	for i, add := range c.Add {
		like := nodes[add.Like]
		if like == nil {
			return nil, nil, 0, fmt.Errorf("there is no node %q for others to be like", add.Like)
		}
		for n := range add.Count {
			name := fmt.Sprintf("%s-added-%d-%d", like.Name, i+1, n+1)
			changed.Objects = append(changed.Objects, another(like, name, add.Labels))
			changed.Objects = append(changed.Objects, beside(s, like.Name, name)...)
		}
	}
	return changed, homeless, gone, nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// cordoned is a node as `kubectl cordon` leaves it.
func cordoned(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.Spec.Unschedulable = true
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		n.Spec.Taints = append(n.Spec.Taints, taint)
	}
	return n
}

// another is an empty node like one.
func another(like *corev1.Node, name string, labels map[string]string) *corev1.Node {
	n := like.DeepCopy()
	n.Name, n.UID, n.Spec.ProviderID = name, types.UID(name), ""
	n.CreationTimestamp = metav1.Time{}
	n.Spec.Unschedulable = false
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	if n.Labels == nil {
		n.Labels = make(map[string]string)
	}
	if n.Labels[corev1.LabelHostname] != "" {
		n.Labels[corev1.LabelHostname] = name
	}
	maps.Copy(n.Labels, labels)
	n.Status.Images, n.Status.VolumesAttached, n.Status.VolumesInUse = nil, nil, nil
	return n
}

// beside is what stands on each node of a cluster, as on one: the pods of DaemonSets, and the drivers of volumes.
func beside(s *snapshot.Snapshot, like, name string) []runtime.Object {
	var all []runtime.Object
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		if p.Spec.NodeName == like && clusterview.Daemon(p) && !ended(p) {
			p = p.DeepCopy()
			p.Name, p.UID, p.Spec.NodeName = p.Name+"-"+name, p.UID+types.UID("-"+name), name
			all = append(all, p)
		}
	}
	for _, drivers := range snapshot.Of[*storagev1.CSINode](s) {
		if drivers.Name == like {
			drivers = drivers.DeepCopy()
			drivers.Name, drivers.UID = name, types.UID(name)
			all = append(all, drivers)
		}
	}
	return all
}

// replacement is the pod that a controller makes when another one is evicted.
func replacement(of *corev1.Pod) *corev1.Pod {
	p := of.DeepCopy()
	p.Name += "-replacement"
	p.UID += "-replacement"
	p.Spec.NodeName, p.CreationTimestamp, p.DeletionTimestamp = "", metav1.Time{}, nil
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	delete(p.Annotations, clusterview.PlacedByAnnotation)
	delete(p.Annotations, clusterview.DecisionAnnotation)
	delete(p.Annotations, clusterview.DeletionOrdinalAnnotation)
	delete(p.Annotations, corev1.PodDeletionCost)
	return p
}
