// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Outline is a pod's tree as people see it.
type Outline struct {
	// Levels are in the order in which they are, with who says so.
	Levels clusterview.Levels
	// Root is all nodes as one branch. It has branches if the whole tree was asked for.
	Root tree.Branch
	// Misplaced counts the pods of the revision that would have to move, by level, those inside the last as one more.
	Misplaced []int64
	// Undecided has a sentence on each level that decides nothing.
	Undecided []string
}

// Outline returns the tree that PreScore would rank nodes by, if these fit, whole or its root alone. It is for after PreFilter, for a
// pod that the tree places.
func (pl *SpreadTree) Outline(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, fits sets.Set[string], whole bool) (Outline, error) {
	c, err := pl.read(state, pod)
	if err != nil {
		return Outline{}, err
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	view, levels := pl.viewLocked(ctx, c, fits)
	for _, node := range view.Topology.Nodes() {
		if !view.Feasibility.Refused(node) { // those that do not fit are
			view.Feasibility.Allow(node)
		}
	}
	o := Outline{Levels: levels, Misplaced: view.Misplaced(), Undecided: pl.trees.topology(c.levels).undecided}
	if whole {
		o.Root = view.Outline()
		return o, nil
	}
	for _, node := range view.Topology.Nodes() {
		revision, workload := view.Tally.Pods(node)
		o.Root.Revision += int32(revision)
		o.Root.Workload += int32(workload)
	}
	return o, nil
}
