// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// room is how many Moves more may be made.
type room struct {
	left    int
	perNode int
	onNode  map[string]int
	// moving are the pods of the Moves that are busy.
	moving []*corev1.Pod
}

// roomFor returns what the options leave beside the Moves that there are.
func (o *Options) roomFor(c *cluster) *room {
	busy := c.busy()
	r := &room{perNode: o.PerNode, onNode: make(map[string]int), left: min(o.AtOnce-len(busy), o.PerHour-c.madeSince(c.now.Add(-time.Hour)))}
	pods := make(map[types.NamespacedName]*corev1.Pod, len(c.pods))
	for _, p := range c.pods {
		pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	for _, m := range busy {
		if p := pods[types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Pod.Name}]; p != nil {
			r.onNode[p.Spec.NodeName]++
			r.moving = append(r.moving, p)
		}
	}
	return r
}

func (r *room) none() bool { return r.left <= 0 }

// full reports that enough pods leave a node already.
func (r *room) full(node string) bool { return r.onNode[node] >= r.perNode }

// movesOf reports that a pod is being moved that counts beside those of a workload: of another Deployment, with the same label or under the same
// constraint.
func (r *room) movesOf(w *deployed) bool {
	return slices.ContainsFunc(r.moving, func(p *corev1.Pod) bool { return p.Namespace == w.Set.Namespace && w.Counts(p) })
}

// take notes a Move that has been made.
func (r *room) take(pod *corev1.Pod) {
	r.left--
	r.onNode[pod.Spec.NodeName]++
	r.moving = append(r.moving, pod)
}
