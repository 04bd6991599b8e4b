// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// scoresKey is where the scores of the cycle's nodes are kept.
const scoresKey fwk.StateKey = "PreScore" + Name

// scores are by node name, for all nodes that fit: the best class of equals has 100, each class after it one less, and
// those that are beyond counting 0.
type scores map[string]int64

// Clone shares the scores: they are written once.
func (s scores) Clone() fwk.StateData { return s }

// PreScore ranks the nodes that passed the filters by the tree of the pod's batch.
// It skips the pods that are not spread.
func (pl *SpreadTree) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	if !pl.Places(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	c, err := pl.read(state, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	fits := sets.New[string]()
	for _, n := range nodes {
		fits.Insert(n.Node().Name)
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	view, placedBy := pl.viewLocked(ctx, c, fits)
	state.Write(scoresKey, pl.scoresLocked(ctx, state, pod, view))
	pl.keep(state, view, none)
	clusterview.WritePlacedBy(state, placedBy)
	return nil
}

// scoresLocked returns those of the nodes that fit. The node that a hint would propose is the best, and its equals come after it. Preferences
// come before loads and images: to a pod that has any, or that others have some about, nodes are equals that only loads tell apart.
func (pl *SpreadTree) scoresLocked(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, view tree.View) scores {
	byLoad := !pl.prefersLocked(pod)
	ranked := view.Rank(byLoad)
	best, after := int32(-1), int64(0)
	if byLoad && pl.ties != nil && len(ranked) > 0 {
		best = pl.best(ctx, state, pod, view, ranked[0].Node, func(int32) (bool, int) { return true, 0 })
		after = 1
	}
	s, nodes := make(scores, len(ranked)), pl.trees.index.Nodes()
	for _, r := range ranked {
		s[nodes.Name(r.Node)] = max(fwk.MaxScore-int64(r.Class)-after, fwk.MinScore)
	}
	if after > 0 {
		s[nodes.Name(best)] = fwk.MaxScore
	}
	return s
}

// viewLocked returns a pod's view of the nodes that fit, and the levels in the order in which they are.
func (pl *SpreadTree) viewLocked(ctx context.Context, c cycle, fits sets.Set[string]) (tree.View, clusterview.Levels) {
	start := time.Now()
	id := pl.trees.index.RefreshFor(c.pod, c.snapshot)
	t := pl.trees.tally(id, c.levels, c.faults)
	pl.gauges.shown(t, time.Since(start))
	pl.notifyLocked(c.pod, id, c.levels, t)
	t.needs = ""
	nodes, answers := pl.trees.index.Nodes(), feasibility.Of(pl.trees.index.Nodes(), c.pod)
	answers.Refresh()
	for _, node := range t.Topology().Nodes() {
		if !fits.Has(nodes.Name(node)) {
			answers.Refuse(node, 0)
		}
	}
	view := tree.View{Topology: t.Topology(), Feasibility: answers, Tally: t.Tally, Turn: pl.turnLocked(c, id, t)}
	if logger := klog.FromContext(ctx).V(6); logger.Enabled() {
		logger.Info("Ranked the nodes that fit", "workload", t.id.Workload, "revision", t.id.Revision, "tree", drawing.Tree(view))
	}
	return view, t.placedBy(c.levels)
}

// Score returns the node's position in the tree. A node that the tree does not
// have, because it came or was relabelled since the filters saw it, is last.
func (pl *SpreadTree) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(scoresKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading %q: %w", scoresKey, err))
	}
	s, ok := data.(scores)
	if !ok {
		return 0, fwk.AsStatus(fmt.Errorf("reading %q: it holds a %T", scoresKey, data))
	}
	return s[node.Node().Name], nil
}

// ScoreExtensions is nil: the scores are on the framework's scale already, and
// stretching them would tear classes apart that the weight keeps together.
func (pl *SpreadTree) ScoreExtensions() fwk.ScoreExtensions { return nil }
