// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// maxNamed bounds the workloads that a message names.
const maxNamed = 5

// suspect is a node that several workloads fail on.
type suspect struct {
	// since is when that was first seen, and gone since when it is not any more, zero as
	// long as it is.
	since, gone time.Time
	said        bool
}

// lookAtSuspects finds what is to be said of suspects. The caller holds the lock.
func (c *Cache) lookAtSuspects(now time.Time, soon func(time.Time)) (all []news) {
	standing := make(map[string]bool)
	lasted := 0
	for _, s := range c.ledger.Suspects(c.options.Suspects) {
		standing[s.Node] = true
		known := c.suspects[s.Node]
		if known == nil {
			known = &suspect{since: now}
			c.suspects[s.Node] = known
		}
		known.gone = time.Time{}
		if at := known.since.Add(lasting); at.After(now) {
			soon(at)
			continue
		}
		lasted++
		if !known.said && c.active.Load() {
			known.said = true
			names := s.Workloads[:min(len(s.Workloads), maxNamed)]
			note := fmt.Sprintf("node %s is faulty for %d unrelated workloads: %s", s.Node, len(s.Workloads), strings.Join(names, ", "))
			if more := len(s.Workloads) - len(names); more > 0 {
				note += fmt.Sprintf(" and %d more", more)
			}
			all = append(all, c.tellOfNode(s.Node, corev1.EventTypeWarning, ReasonSuspect, note)...)
		}
	}
	c.gauge(suspectNodes, lasted)
	for _, node := range slices.Sorted(maps.Keys(c.suspects)) {
		known := c.suspects[node]
		if standing[node] || known.said && !faded(now, &known.gone, soon) {
			continue
		}
		if known.said {
			all = append(all, c.tellOfNode(node, corev1.EventTypeNormal, ReasonSuspectCleared,
				fmt.Sprintf("node %s is no longer faulty for %d unrelated workloads", node, c.options.Suspects))...)
		}
		delete(c.suspects, node)
	}
	return all
}

func (c *Cache) tellOfNode(name, kind, reason, note string) []news {
	klog.V(2).InfoS(note, "node", name, "reason", reason)
	node := c.node(name)
	if node == nil {
		return nil
	}
	return []news{{regarding: node, kind: kind, reason: reason, note: note}}
}

// saidSuspects are the nodes of which people were told. The caller holds the lock.
func (c *Cache) saidSuspects() map[string]bool {
	nodes := make(map[string]bool)
	for node, s := range c.suspects {
		if s.said {
			nodes[node] = true
		}
	}
	return nodes
}
