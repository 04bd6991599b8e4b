// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
)

// Order says how good some nodes are for a pod by the tree, if others make way for it there: a higher number is better.
// Nodes are equals to a pod that is not spread.
//
// Pods that are nominated for a node count there. They have none yet, so that a batch whose pods take the place of
// others would see the same best node again and again.
func (pl *SpreadTree) Order(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []string) (map[string]int64, error) {
	order := make(map[string]int64, len(nodes))
	if !pl.Places(pod) {
		return order, nil
	}
	c, err := pl.read(state, pod)
	if err != nil {
		return nil, err
	}
	before := c.snapshot
	c.snapshot = pl.withNominated(before, pod)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	view, _ := pl.viewLocked(ctx, c, sets.New(nodes...))
	for _, r := range view.Rank(!pl.prefersLocked(pod)) {
		order[pl.trees.index.Nodes().Name(r.Node)] = -int64(r.Class)
	}
	pl.trees.index.Refresh(before) // what is not there is not to be seen by a scrape
	return order, nil
}

// withNominated returns a snapshot with the pods that are nominated for its nodes, but for one.
func (pl *SpreadTree) withNominated(snapshot podcount.Snapshot, but *corev1.Pod) podcount.Snapshot {
	with := podcount.Snapshot{Nodes: slices.Clone(snapshot.Nodes), Tentative: true}
	for i, info := range with.Nodes {
		if info.Node() == nil {
			continue
		}
		for _, p := range pl.handle.NominatedPodsForNode(info.Node().Name) {
			if p.GetPod().UID == but.UID {
				continue
			}
			if with.Nodes[i] == info {
				with.Nodes[i] = info.Snapshot()
			}
			with.Nodes[i].AddPodInfo(p)
		}
	}
	return with
}
