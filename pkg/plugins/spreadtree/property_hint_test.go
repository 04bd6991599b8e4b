// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
)

// propose returns the node that the plugin proposes for a pod, which must be one of those
// that the oracle calls best, and "" only where none fits. All pods have the same needs:
// what was said of a node to one is remembered for the next, whatever its levels are.
func (w *world) propose(p *worldPod, seen []placement.Node, fit []string) string {
	fits := func(name string) bool { return slices.Contains(fit, name) }
	w.feasible()
	node, _, err := w.pl.Hint(w.ctx, p.state, p.pod, true, func(name string) *fwk.Status { return statusIf(fits(name)) })
	w.must(err)
	if node == "" && len(fit) == 0 {
		return ""
	}
	if want := oracle.BestClass(mustLevels(w.rig, p.pod).List, w.rule(), seen, clusterview.Request(p.pod), fits); !slices.Contains(want, node) {
		w.t.Fatalf("%q is proposed for %s with %v, the oracle's best are %q\n%s", node, p.pod.Name, p.pod.Annotations, want, drawing.Tree(w.shown(p.pod)))
	}
	if err := w.shown(p.pod).Validate(); err != nil {
		w.t.Fatal(err)
	}
	return node
}
