// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podgroupv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/workload"
	"github.com/espalier-scheduler/espalier/pkg/placement/plan"
)

// deployed is the pods of a Deployment's newest ReplicaSet, and how they are placed.
type deployed struct{ *workload.Workload }

// workloadOf returns that of a Deployment's newest ReplicaSet. It is false for one whose pods are left alone: they are not spread by one of the schedulers, their
// volumes or claims bind them, or limits are on them that no filter of kube-scheduler knows.
func (o *Options) workloadOf(set *appsv1.ReplicaSet, pods []*corev1.Pod) (*deployed, bool) {
	if len(pods) == 0 || !movable(pods[0]) {
		return nil, false
	}
	w, spread := workload.Of(set, pods)
	if !spread || !slices.Contains(o.Schedulers, w.Pods[0].Spec.SchedulerName) {
		return nil, false
	}
	return &deployed{w}, true
}

// movable reports that nothing binds a pod that the filters are not asked about.
func movable(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return false
		}
	}
	for _, key := range []string{clusterview.DomainLimitsAnnotation, clusterview.ConstraintsAnnotation, clusterview.PlatformsAnnotation} {
		if _, there := pod.Annotations[key]; there {
			return false
		}
	}
	group := pod.Labels[podgroupv1alpha1.PodGroupLabel] != "" || pod.Spec.SchedulingGroup != nil
	return !group && len(pod.Spec.ResourceClaims) == 0
}

// planned is a pod that should be replaced.
type planned struct {
	pod *corev1.Pod
	// to is the node on which the replacement is expected. Any other one outside of the domain that it avoids is as good.
	to    string
	avoid placementv1alpha1.Domain
	// misplaced is how many pods are, by level, before it is.
	misplaced []int64
	// spared says by what the pod asks to be left where it is, "" if it does not: it stays then, and no other one does in its place.
	spared string
}

// plan returns the pod that should go first, nil if none is better off elsewhere; even says that none would be, wherever there were room.
func (w *deployed) plan(ctx context.Context, c *cluster, o *Options) (next *planned, isEven bool, err error) {
	t := w.Tree(c.nodes, c.on)
	if !slices.ContainsFunc(workload.MisplacedIn(t), func(n int64) bool { return n > 0 }) {
		return nil, true, nil
	}
	fit, err := c.fits(ctx, w.Pods[0])
	if err != nil {
		return nil, false, err
	}
	nodes := make(map[string]*corev1.Node, len(c.nodes))
	for _, n := range c.nodes {
		nodes[n.Name] = n
	}
	takes := func(name string) bool {
		return clusterview.Leaving(nodes[name]) == "" && readyFor(nodes[name], c.now) >= o.NodeReady && fit(name)
	}
	t.Rank(takes)
	misplaced := t.Misplaced()
	move, ok := plan.Next(t, takes)
	if !ok {
		return nil, false, nil // no node takes a pod that would be better off there
	}
	there := slices.DeleteFunc(slices.Clone(w.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != move.From })
	pod, spared := leaving(there, c, o)
	if pod == nil && spared != nil {
		if pod = w.instead(t, &move, misplaced, nodes, takes, c, o); pod == nil {
			return &planned{pod: spared, spared: clusterview.Spared(spared, c.now)}, false, nil
		}
	}
	if pod == nil {
		return nil, false, nil // what is too much there is not of this Deployment, or too young
	}
	// The scheduler is asked while the pod is there. What it allows then may break a hard constraint once the pod is gone.
	if instead, err := c.fitsInstead(ctx, pod, move.To); !instead || err != nil {
		return nil, false, err
	}
	return &planned{pod: pod, to: move.To, avoid: w.avoid(nodes[move.From], nodes[move.To]), misplaced: misplaced}, false, nil
}

// leaving is which of the pods of a node leaves it: the one that would be removed first, of those that do not ask to be left there; spared is the first of these.
func leaving(pods []*corev1.Pod, c *cluster, o *Options) (first, spared *corev1.Pod) {
	before := func(p, first *corev1.Pod) bool { return first == nil || costOf(p) < costOf(first) }
	for _, p := range pods {
		if p.DeletionTimestamp != nil || c.now.Sub(p.CreationTimestamp.Time) < o.PodAge || resizing(p) || c.histories[string(p.UID)].N > 0 {
			continue
		}
		switch isSpared := clusterview.Spared(p, c.now) != ""; {
		case isSpared && before(p, spared):
			spared = p
		case !isSpared && before(p, first):
			first = p
		}
	}
	return first, spared
}

func costOf(pod *corev1.Pod) int {
	cost, err := strconv.Atoi(pod.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return cost
}

// resizing reports that what a pod requests is about to be something else.
func resizing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return (c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress) && c.Status == corev1.ConditionTrue
	})
}

// avoid is the domain of the first level at which two nodes differ: the one that the pod leaves.
func (w *deployed) avoid(from, to *corev1.Node) placementv1alpha1.Domain {
	for _, l := range w.Levels {
		label := cmp.Or(l.Property.Label, corev1.LabelHostname)
		if is := clusterview.DomainOf(from, label); is != clusterview.DomainOf(to, label) {
			return placementv1alpha1.Domain{TopologyKey: label, Value: &is}
		}
	}
	is := clusterview.DomainOf(from, corev1.LabelHostname)
	return placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname, Value: &is}
}
