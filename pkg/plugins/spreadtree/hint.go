// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Hints reports whether the arguments have the plugin propose nodes.
func (pl *SpreadTree) Hints() bool { return pl.hints == config.NodeHintEnabled }

// Places reports whether the plugin decides about a pod.
func (pl *SpreadTree) Places(pod *corev1.Pod) bool { return !clusterview.Preassigned(pod) }

// SetScoring has the plugin go by the scoring of its profile. It is for before the first cycle.
func (pl *SpreadTree) SetScoring(by clusterview.Scoring) {
	pl.prefers = by.PrefersNodes
	pl.trees.index.SetScoring(by)
}

// prefersLocked reports whether scoring is to decide between nodes that are equals to the tree: the pod or the profile has preferences, or pods
// that run have some about pods like it, or it claims volumes that make nodes differ. The index shows the cycle's snapshot.
func (pl *SpreadTree) prefersLocked(pod *corev1.Pod) bool {
	return pl.prefers || clusterview.Prefers(pod) || pl.claims.Compared(pod) || pl.trees.index.Preferred(pod, func() labels.Set {
		namespace, err := pl.namespaces.Get(pod.Namespace)
		if err != nil {
			return nil // InterPodAffinity takes one that it does not know to have no labels
		}
		return namespace.Labels
	})
}

// Follow has the plugin look only at nodes that are said to have changed. It is for
// before the first cycle.
func (pl *SpreadTree) Follow(changes podcount.Changes) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.trees.follow(changes)
}

// Hint returns the first node by the tree that the pod fits on, "" if there is none:
// one of those that PreScore, shown the nodes that fit, would score 100. It is for
// after PreFilter, and counts nothing. If it is known that the pod fits on no node at
// all, and that preemption cannot help, the refusal says so. The error is clusterview.ErrPrefers if scoring is to decide
// between the nodes that are equals to the tree.
//
// ask asks the pod's filters about a node. lasting says that their answers depend
// on the pod and the node alone, so that they hold for pods with the same needs
// until the node changes. Pods nominated for a node are no part of it, so
// what was answered beside them is asked again. On the node it returns the filters have been
// asked in this cycle, whatever is remembered. Many may call ask at once.
func (pl *SpreadTree) Hint(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, lasting bool, ask func(node string) *fwk.Status) (string, *clusterview.Refusal, error) {
	if clusterview.Prefers(pod) { // which needs no tree
		return "", nil, clusterview.ErrPrefers
	}
	c, err := pl.read(state, pod)
	if err != nil {
		return "", nil, err
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	start := time.Now()
	id := pl.trees.index.RefreshFor(pod, c.snapshot)
	refreshed := time.Since(start)
	if pl.prefersLocked(pod) {
		return "", nil, clusterview.ErrPrefers
	}
	var needs clusterview.Needs
	if lasting {
		if needs, err = clusterview.NeedsOf(pod); err != nil {
			return "", nil, err
		}
		needs += clusterview.AddedNeeds(state)
	}
	start = time.Now().Add(-refreshed)
	f := pl.trees.answers(needs, c.pod)
	q := &feasibility.Question{
		Ask: ask, Nominated: pl.nominated, Nodes: pl.trees.index.Nodes(), Of: f, Prefetch: pl.prefetch,
		Parallel: func(n int, do func(int)) error {
			pl.handle.Parallelizer().Until(ctx, n, do, Name)
			return ctx.Err()
		},
	}
	refusal := func() *clusterview.Refusal {
		// Of the nodes that levels leave out, the full path says that first.
		if !lasting || clusterview.AnyExcludes(c.levels.List) {
			return nil
		}
		if q.AskBesideNominated(); q.Err() != nil {
			return nil
		}
		return f.Refusal(pod, pl.trees.index.LowestPriority())
	}
	// Before there is a topology: a pod that fits nowhere is not to cost one, whatever its levels are.
	if lasting && !clusterview.AnyExcludes(c.levels.List) {
		asked := time.Now()
		if q.PrefetchFew(); !pl.trees.hasTopology(c.levels) && q.Err() == nil {
			q.Probe()
		}
		start = start.Add(time.Since(asked)) // which is no part of bringing a tree up to date
	}
	if f.Open() == 0 && q.Err() == nil {
		return "", refusal(), nil
	}
	t := pl.trees.tally(id, c.levels, c.faults)
	q.Topology = t.Topology()
	pl.gauges.shown(t, time.Since(start))
	pl.notifyLocked(pod, id, c.levels, t)
	clusterview.WritePlacedBy(state, t.placedBy(c.levels))
	t.needs = needs
	view := tree.View{Topology: t.Topology(), Feasibility: f.Feasibility, Tally: t.Tally, Turn: pl.turnLocked(c, id, t)}
	node, found := view.Next(q.Fit)
	if found && q.Err() == nil {
		node = pl.best(ctx, state, pod, view, node, q.Fit)
	}
	switch {
	case q.Err() != nil:
		return "", nil, q.Err()
	case !found:
		return "", refusal(), nil
	}
	pl.keep(state, view, node)
	return q.Nodes.Name(node), nil, nil
}

func (pl *SpreadTree) nominated(node string) bool {
	return len(pl.handle.NominatedPodsForNode(node)) > 0
}
