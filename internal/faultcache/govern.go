// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// A revision has one rule, and its pods may be under several policies: pods that a label makes
// one workload, and pods that somebody has relabelled. Of the policies that govern any of
// them the one that comes first governs the revision. Were it the one of the pod that was looked at last, what is
// faulty would change with each pod, and the whole revision be judged anew each time.
//
// It goes on to govern when those pods are gone, until it is edited or deleted: to notice
// that they are gone would be to ask all pods again and again.

// governed is which policy governs a revision.
type governed struct {
	// by is the policy, nil for none.
	by *clusterview.Policy
	// witness is a pod that it governs: as long as it does, no other pod has to be asked. It is
	// nil before any is.
	witness *corev1.Pod
}

// ruleFor is the rule of a pod's revision. A revision that is not followed has that of the pod.
// The caller holds the lock.
func (c *Cache) ruleFor(of failure.Revision, pod *corev1.Pod) failure.Rule {
	t := c.tracked[of]
	if t == nil {
		return c.Policy(pod).FaultRule(c.options.Rule)
	}
	c.govern(of, t, pod)
	return c.ledger.Rule(of)
}

// govern finds the policy that governs a revision, of which a pod is looked at.
func (c *Cache) govern(of failure.Revision, t *tracked, pod *corev1.Pod) {
	g := governed{c.Policy(pod), pod}
	switch {
	case t.witness == nil:
		g = c.first(of, t.family, g)
	case g.by == t.by:
		return
	case g.isBefore(t.governed):
	case c.Policy(t.witness) == t.by:
		return
	default:
		// It was edited or is gone, or its witness is under another one by now.
		g = c.first(of, t.family, g)
	}
	t.governed = g
	c.ledger.SetRule(of, g.by.FaultRule(c.options.Rule))
}

// isBefore reports whether the policy of g comes before that of h, as any does before none.
func (g governed) isBefore(h governed) bool {
	return g.by != nil && (h.by == nil || g.by.Compare(h.by) < 0)
}

// first asks all pods of a revision, and one that may not be among them yet.
func (c *Cache) first(of failure.Revision, family string, g governed) governed {
	for pod := range c.family(family) {
		if h := (governed{c.Policy(pod), pod}); h.isBefore(g) && revisionOf(c.identifier.Identify(pod)) == of {
			g = h
		}
	}
	return g
}
