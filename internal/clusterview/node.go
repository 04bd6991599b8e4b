// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Values returns a node's property at each level.
func Values(node *corev1.Node, levels []level.Level) []placement.Value {
	values := make([]placement.Value, len(levels))
	for i, l := range levels {
		values[i] = Value(node, l.Property)
	}
	return values
}

// Value returns a node's property: a label, or its name.
func Value(node *corev1.Node, p level.Property) placement.Value {
	if p.Label == "" {
		return placement.Value{Text: node.Name}
	}
	text, ok := node.Labels[p.Label]
	return placement.Value{Text: text, Missing: !ok}
}

// DomainOf is the domain of a node by a label, "" where it lacks it. A host name stands for the node's own name.
func DomainOf(node *corev1.Node, label string) string {
	if text, ok := node.Labels[label]; ok || label != corev1.LabelHostname {
		return text
	}
	return node.Name
}

// Unready reports that a node says it is not ready. A node that says nothing is
// taken to be ready: not every control plane has somebody to write conditions, and
// one that has also taints the nodes that have none yet.
func Unready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue
		}
	}
	return false
}

// LeftOut reports that some level leaves out nodes without its property, and this
// is one.
func LeftOut(node *corev1.Node, levels []level.Level) bool {
	for _, l := range levels {
		if l.NodesWithoutKey == level.Exclude && Value(node, l.Property).Missing {
			return true
		}
	}
	return false
}

// AnyExcludes reports whether some level leaves out nodes at all.
func AnyExcludes(levels []level.Level) bool {
	return slices.ContainsFunc(levels, func(l level.Level) bool { return l.NodesWithoutKey == level.Exclude })
}
