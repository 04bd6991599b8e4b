// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is how the pods of a ReplicaSet are spread, for controllers that look at pods after they were placed. It goes by the levels
// that a scheduler has written into the youngest pod, so that it needs neither policies nor profiles.
package workload

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// Workload is the pods of a ReplicaSet, and how they are placed.
type Workload struct {
	Set *appsv1.ReplicaSet
	// Pods are those of the ReplicaSet; the newest is in front.
	Pods   []*corev1.Pod
	Levels []level.Level
	// Counts reports whether a pod of the namespace counts beside these: one of another owner may, if a label or a constraint says so.
	Counts func(*corev1.Pod) bool
	// Alone says that none of another owner does.
	Alone bool
}

// Of returns that of a ReplicaSet and its pods. It is false where the youngest of these was not spread over levels, or has been given
// others since.
func Of(set *appsv1.ReplicaSet, pods []*corev1.Pod) (*Workload, bool) {
	if len(pods) == 0 {
		return nil, false
	}
	w := &Workload{Set: set, Pods: slices.Clone(pods)}
	slices.SortFunc(w.Pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	newest := w.Pods[0]
	var spread bool
	if w.Levels, spread = clusterview.LevelsPlacedBy(newest.Annotations[clusterview.PlacedByAnnotation]); !spread {
		return nil, false
	}
	own, err := clusterview.LevelsOf(newest, nil, nil)
	if err != nil {
		return nil, false // its annotation has changed since it was placed
	}
	switch named := newest.Labels[clusterview.WorkloadLabel]; {
	case own.Selector != nil:
		w.Counts = func(p *corev1.Pod) bool { return own.Selector.Matches(labels.Set(p.Labels)) }
	case named != "":
		w.Counts = func(p *corev1.Pod) bool { return p.Labels[clusterview.WorkloadLabel] == named }
	default:
		w.Alone = true
		w.Counts = func(p *corev1.Pod) bool {
			owner := metav1.GetControllerOfNoCopy(p)
			return owner != nil && owner.UID == set.UID
		}
	}
	return w, true
}

// Tree is the cluster as the workload sees it. Pods are those on a node.
func (w *Workload) Tree(nodes []*corev1.Node, pods map[string][]*corev1.Pod) *simulation.Tree {
	in := make([]placement.Node, len(nodes))
	for i, n := range nodes {
		here := &in[i]
		soft := clusterview.Soft(n)
		*here = placement.Node{
			Name: n.Name, Values: clusterview.Values(n, w.Levels), Unready: clusterview.Unready(n),
			Soft: soft != "" && !clusterview.ToleratesSoft(w.Pods[0].Spec.Tolerations, soft),
		}
		here.Usage.CPU.Allocatable = n.Status.Allocatable.Cpu().MilliValue()
		here.Usage.Memory.Allocatable = n.Status.Allocatable.Memory().Value()
		for _, p := range pods[n.Name] {
			here.Tally.All++
			if p.Namespace == w.Set.Namespace && p.DeletionTimestamp == nil && w.Counts(p) {
				here.Tally.Workload++
				here.Tally.Revision++
			}
		}
	}
	return simulation.New(w.Levels, in...)
}

// MisplacedIn returns how many pods of a tree are misplaced, by level, if every node could take another one.
func MisplacedIn(t *simulation.Tree) []int64 {
	t.Rank(func(string) bool { return true })
	defer t.RecheckAll()
	return t.Misplaced()
}
