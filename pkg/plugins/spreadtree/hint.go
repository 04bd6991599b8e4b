// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// memory says how long what the filters told a tree is worth remembering.
type memory struct {
	// about are the needs for which they were asked; "" if their answers must not
	// outlive the cycle.
	about clusterview.Needs
	// passing are the nodes whose answers must not outlive the cycle: with about "",
	// all that were asked about.
	passing []string
	// unknown: the answers are of who knows which nodes.
	unknown bool
}

// Hints reports whether the arguments have the plugin propose nodes.
func (pl *SpreadTree) Hints() bool { return pl.hints == config.NodeHintEnabled }

// Places reports whether the plugin decides about a pod.
func (pl *SpreadTree) Places(pod *corev1.Pod) bool { return !pl.identifier.Identify(pod).Preassigned }

// Follow has the plugin look only at nodes that are said to have changed. It is for
// before the first cycle.
func (pl *SpreadTree) Follow(changes clusterview.Changes) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.forest.follow(changes)
}

// Hint returns the first node by the tree that the pod fits on, "" if there is none:
// one of those that PreScore, shown the nodes that fit, would score 100. It is for
// after PreFilter, and counts nothing.
//
// fits asks the pod's filters about a node. lasting says that their answers depend
// on the pod and the node alone, so that they hold for pods with the same needs
// until the node changes. Pods nominated for a node are no part of it, so
// what was said beside them is asked again; Doubt is for when they are nominated. On
// the node it returns the filters have been asked in this cycle, whatever is remembered.
// Many may call fits at once.
func (pl *SpreadTree) Hint(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, lasting bool, fits func(node string) (bool, error)) (string, error) {
	levels, err := levels(state, pod)
	if err != nil {
		return "", err
	}
	faults, err := clusterview.ReadFaults(state)
	if err != nil {
		return "", err
	}
	snapshot, err := pl.snapshot(state)
	if err != nil {
		return "", err
	}
	var needs clusterview.Needs
	if lasting {
		if needs, err = clusterview.NeedsOf(pod); err != nil {
			return "", err
		}
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	_, p := pl.treeLocked(pod, levels, faults, snapshot)
	p.recall(needs)
	q := &question{
		fits: fits, nominated: pl.nominated, changed: pl.forest.census.Changed, snapshot: snapshot.Nodes, of: p, pace: pl.pace,
		known: pl.forest.said.to(needs, len(snapshot.Nodes)), lasting: lasting,
		parallel: func(n int, do func(int)) error {
			pl.handle.Parallelizer().Until(ctx, n, do, Name)
			return ctx.Err()
		},
	}
	node := q.best(p.tree)
	if q.err != nil {
		// Who was asked after the error was not asked, and the tree took that for a no.
		p.memory = memory{unknown: true}
		return "", q.err
	}
	return node, nil
}

// Doubt has the filters asked about a node again although it has not changed.
func (pl *SpreadTree) Doubt(node string) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.forest.census.Doubt(node)
}

func (pl *SpreadTree) nominated(node string) bool {
	return len(pl.handle.NominatedPodsForNode(node)) > 0
}

// recall forgets what the filters said in earlier cycles, but for what still holds.
func (p *planted) recall(needs clusterview.Needs) {
	m := p.memory
	if m.unknown || m.about != "" && m.about != needs {
		p.tree.RecheckAll()
	} else {
		for _, node := range m.passing {
			p.tree.Recheck(node)
		}
	}
	p.memory = memory{about: needs, passing: m.passing[:0]}
}
