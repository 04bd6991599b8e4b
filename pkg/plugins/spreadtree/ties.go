// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// maxTied is among how many nodes those are looked for that tie with the best one. It bounds what a pod costs.
const maxTied = 16

// BreakTies has ImageLocality of the profile score the nodes that nothing but their names tells apart, with hints and without. It is not
// asked where no node has an image of the pod. It is for before the first cycle.
func (pl *SpreadTree) BreakTies(by fwk.ScorePlugin) { pl.ties = by }

// HashTies has nodes that tie come in an order of the replica's own, so that several do not all want the same. It is for before the first cycle.
func (pl *SpreadTree) HashTies(replica string) { pl.trees.replica = replica; pl.trees.reset() }

// best returns the node that has the highest score of those that tie with one, the first of them in the tree's order. One that cannot be
// scored has the lowest: which of them it is is no reason to refuse a pod.
func (pl *SpreadTree) best(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, v tree.View, node int32, fit tree.Fit) int32 {
	if pl.ties == nil || !pl.trees.index.HasImage(pod) {
		return node
	}
	tied := v.Tied(node, maxTied)
	if len(tied) == 1 {
		return node
	}
	scores := make(map[int32]int64, len(tied))
	for _, n := range tied {
		if info := pl.trees.index.Info(n); info != nil {
			scores[n], _ = pl.ties.Score(ctx, state, pod, info) // 0 with an error
		}
	}
	slices.SortStableFunc(tied, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	for _, n := range tied {
		if v.Feasibility.Allowed(n) {
			return n
		}
		if ok, _ := fit(n); ok {
			return n
		}
	}
	return node
}
