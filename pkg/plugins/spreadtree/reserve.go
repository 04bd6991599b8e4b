// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"cmp"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/scaledown"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Reserve leaves what the pod is bound with: how its node was chosen, and its deletion cost, so that its ReplicaSet removes it when
// those that came after it are gone. All that the pod is counted by is known by now.
func (pl *SpreadTree) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	levels, found := clusterview.ReadPlacedBy(state)
	if !found {
		// The filters have left one node. Nobody was asked for a tree.
		var err error
		if levels, found, err = clusterview.ReadLevels(state); err != nil || !found {
			return nil
		}
	}
	id := pl.identifier.Identify(pod)
	if id.Preassigned {
		return nil
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	at, known := pl.trees.index.Nodes().Find(node)
	if !known {
		return nil
	}
	annotations := make(map[string]string)
	if text := decided(state, at); text != "" {
		annotations[clusterview.DecisionAnnotation] = text
	}
	if pl.evenScaleDown(levels) {
		cost, foreign, ok := pl.trees.costs.Reserve(pod, at, scaledown.Pods{Index: pl.trees.index, Workload: id.Workload}, pl.trees.topology(levels).Topology)
		if foreign {
			pl.notifyForeignLocked(pod)
		}
		if ok {
			maps.Copy(annotations, scaledown.Annotations(cost))
		}
	}
	clusterview.WriteBinding(state, annotations)
	return nil
}

// evenScaleDown reports whether what is left of a workload is to be even when some of its pods are removed.
func (pl *SpreadTree) evenScaleDown(levels clusterview.Levels) bool {
	return cmp.Or(config.ScaleDown(levels.ScaleDown), pl.scaleDown) == config.ScaleDownEven
}

// turnLocked is that of a pod whose controller removes the highest index first, nil for others.
// Its own identity counts: a tally may be that of another owner as well.
func (pl *SpreadTree) turnLocked(c cycle, id clusterview.Identity, t *tally) *tree.Turn {
	if !pl.evenScaleDown(c.levels) {
		return nil
	}
	return pl.trees.costs.Turn(c.pod, scaledown.Pods{Index: pl.trees.index, Workload: id.Workload}, t.Topology())
}

// Unreserve takes that back.
func (pl *SpreadTree) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.trees.costs.Unreserve(pod)
}
