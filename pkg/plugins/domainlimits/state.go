// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// countsKey is where the counts of the pod being scheduled are kept for the cycle.
const countsKey fwk.StateKey = "PreFilter" + Name

// counts is what one cycle knows: the pod's identity, and where pods like it are.
type counts struct {
	id     clusterview.Identity
	limits *limit.Counts
}

// Clone shares what PreFilter counted, which nobody changes any more. What pods were
// added and removed since is copied: each clone is a what-if of its own.
func (c *counts) Clone() fwk.StateData { return &counts{id: c.id, limits: c.limits.Clone()} }

// move counts a pod that comes to a node, or leaves it, if it is one that counts.
func (c *counts) move(id clusterview.Identity, pod *corev1.Pod, node *corev1.Node, pods int64) {
	if c.id.SameRevision(id) && podcount.Counts(pod) {
		c.limits.Add(clusterview.AppendDomains(nil, node, c.limits.Limits()), pods)
	}
}

// check reports whether the pod may go to a node.
func (c *counts) check(node *corev1.Node) limit.Verdict {
	var buffer [limit.MaxLimits]placement.Value
	return c.limits.Check(clusterview.AppendDomains(buffer[:0], node, c.limits.Limits()))
}

func read(state fwk.CycleState) (*counts, error) {
	data, err := state.Read(countsKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return nil, fmt.Errorf("plugin %s: the cycle has no counts: is it enabled at PreFilter?", Name)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin %s: reading %q: %w", Name, countsKey, err)
	}
	c, ok := data.(*counts)
	if !ok {
		return nil, fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, countsKey, data)
	}
	return c, nil
}
