// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// ownError is a kind of failure that is taken for a workload's own. There is no
// Event about it: its pods fail everywhere, which is seen. But the log must say why no node
// is faulty.
type ownError struct {
	of               failure.Revision
	kind             string
	onNodes, ofNodes int
}

// lookAtOwnErrors finds the kinds that have come to be the workload's own since the last
// look. The caller holds the lock.
func (c *Cache) lookAtOwnErrors() (fresh []ownError) {
	for of, t := range c.tracked {
		kinds, tried := c.ledger.Own(of)
		before := t.own
		t.own = nil
		for _, k := range kinds {
			if t.own == nil {
				t.own = make(map[string]bool, len(kinds))
			}
			t.own[k.Kind] = true
			if !before[k.Kind] {
				fresh = append(fresh, ownError{of, k.Kind, k.Nodes, tried})
			}
		}
	}
	return fresh
}

func (c *Cache) logOwnErrors(fresh []ownError) {
	for _, e := range fresh {
		c.logger.V(2).Info("Blaming no node: the error is the workload's own", "workload", e.of.Workload, "revision", e.of.Revision,
			"kind", e.kind, "nodes", e.onNodes, "nodesTried", e.ofNodes)
	}
}
