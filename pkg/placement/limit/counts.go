// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"iter"
	"maps"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Verdict is what the limits say of one more pod on a node.
type Verdict int

const (
	// Room says that the node's domains all have room.
	Room Verdict = iota
	// Full says that some domain of the node has as many pods as its limit allows.
	Full
	// Missing says that the node lacks the property of a limit. Such a node is in no
	// domain, so the limit would not count its pods. Pods are kept off it, as with
	// Nomad's distinct_property.
	Missing
)

// Counts holds the pods of one revision by domain. It answers for one set of limits;
// a node's values are its properties at these, in their order.
//
// All clones share the counts of Count, which do not change. Each clone has its own copy
// of the changes since. So the cost of a clone depends on the number of changes, not on
// the size of the cluster.
type Counts struct {
	limits []Limit
	// base is by limit, and never changes.
	base    []map[string]int64
	changes map[domain]int64
}

// domain is the nodes of one value.
type domain struct {
	limit int
	value string
}

// Count counts the pods of nodes, given as their values and the number of pods on them.
// It keeps no slice of values.
func Count(limits []Limit, nodes iter.Seq2[[]placement.Value, int64]) *Counts {
	c := &Counts{limits: limits, base: make([]map[string]int64, len(limits))}
	for i := range c.base {
		c.base[i] = make(map[string]int64)
	}
	for values, pods := range nodes {
		for i, v := range values {
			if !v.Missing {
				c.base[i][v.Text] += pods
			}
		}
	}
	return c
}

// Limits are the limits that the counts answer for.
func (c *Counts) Limits() []Limit { return c.limits }

// Add counts more pods on a node, or fewer if pods is negative. The node is given by its values
// of the limits' properties, in the order of the limits. Without a property it is in no domain.
func (c *Counts) Add(values []placement.Value, pods int64) {
	if c.changes == nil {
		c.changes = make(map[domain]int64)
	}
	for i, v := range values {
		if !v.Missing {
			c.changes[domain{i, v.Text}] += pods
		}
	}
}

// Check reports whether one more pod may go to a node.
func (c *Counts) Check(values []placement.Value) Verdict {
	verdict := Room
	for i, v := range values {
		if v.Missing {
			return Missing
		}
		if c.base[i][v.Text]+c.changes[domain{i, v.Text}] >= c.limits[i].Pods {
			verdict = Full
		}
	}
	return verdict
}

// Clone returns counts that can be changed without changing these.
func (c *Counts) Clone() *Counts {
	return &Counts{limits: c.limits, base: c.base, changes: maps.Clone(c.changes)}
}
