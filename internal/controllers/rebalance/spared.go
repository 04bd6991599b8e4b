// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/plan"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// mostOthers bounds how many nodes are tried where a pod that should go asks to be left there. To try one is a look at all nodes.
const mostOthers = 20

// instead returns the pod of another node that goes in place of one that asks to be left where it is, nil where none makes the Deployment more even,
// and changes the move in the tree to its. A pod of the same domain does as well as that one as a rule, so they come first, the fullest node in front.
func (w *deployed) instead(t *simulation.Tree, is *plan.Move, misplaced []int64, nodes map[string]*corev1.Node, takes placement.Fits, c *cluster, o *Options) *corev1.Pod {
	domain := w.avoid(nodes[is.From], nodes[is.To])
	goes, pods := make(map[string]*corev1.Pod), make(map[string][]*corev1.Pod)
	for _, p := range w.Pods {
		pods[p.Spec.NodeName] = append(pods[p.Spec.NodeName], p)
	}
	for name, there := range pods {
		if nodes[name] == nil || name == is.From {
			continue
		}
		if p, _ := leaving(there, c, o); p != nil {
			goes[name] = p
		}
	}
	outside := func(name string) int {
		if clusterview.DomainOf(nodes[name], domain.TopologyKey) == *domain.Value {
			return 0
		}
		return 1
	}
	others := slices.SortedFunc(maps.Keys(goes), func(a, b string) int {
		return cmp.Or(cmp.Compare(outside(a), outside(b)), cmp.Compare(len(pods[b]), len(pods[a])), cmp.Compare(a, b))
	})
	other, ok := plan.Instead(t, *is, misplaced, others[:min(len(others), mostOthers)], takes)
	if !ok {
		return nil
	}
	*is = other
	return goes[other.From]
}
