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

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const (
	// maxNamed bounds the workloads that a message names.
	maxNamed = 5
	// minNamespaces is how many namespaces have workloads that a node is faulty for, if it is
	// suspect: who may make pods in one namespace can make any number of workloads that fail.
	minNamespaces = 2
)

// namespacesOf is how many namespaces workloads are of.
func namespacesOf(workloads []string) int {
	namespaces := make(map[string]bool)
	for _, w := range workloads {
		namespaces[record.Namespace(failure.Revision{Workload: w})] = true
	}
	return len(namespaces)
}

// suspect is a node that workloads of several namespaces fail on.
type suspect struct {
	// since is when that was first seen, and gone since when it is not any more, zero as
	// long as it is.
	since, gone time.Time
	announced   bool
	// tainting says that it is one to taint, from when it first was until it is no
	// suspect any more: what speaks for that may end meanwhile, as pods do.
	tainting bool
}

// lookAtSuspects returns the Events that suspects call for. The caller holds the lock.
func (c *Cache) lookAtSuspects(now time.Time, soon func(time.Time)) (all []pendingEvent) {
	current, evident := make(map[string]bool), c.evident()
	lasted := 0
	for _, s := range c.ledger.Suspects(c.options.Suspects) {
		namespaces := namespacesOf(s.Workloads)
		if namespaces < minNamespaces {
			continue
		}
		current[s.Node] = true
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
		if evident[s.Node] && !known.tainting {
			known.tainting = true
			token(c.urgent)
		}
		if !known.announced && c.active.Load() {
			known.announced = true
			names := s.Workloads[:min(len(s.Workloads), maxNamed)]
			note := fmt.Sprintf("node %s is faulty for %d workloads of %d namespaces: %s", s.Node, len(s.Workloads), namespaces, strings.Join(names, ", "))
			if more := len(s.Workloads) - len(names); more > 0 {
				note += fmt.Sprintf(" and %d more", more)
			}
			all = append(all, c.nodeEvent(s.Node, corev1.EventTypeWarning, ReasonSuspect, note)...)
		}
	}
	c.gauge(suspectNodes, lasted)
	for _, node := range slices.Sorted(maps.Keys(c.suspects)) {
		known := c.suspects[node]
		if current[node] || known.announced && (!c.active.Load() || !faded(now, &known.gone, soon)) {
			continue
		}
		if known.announced {
			all = append(all, c.nodeEvent(node, corev1.EventTypeNormal, ReasonSuspectCleared,
				fmt.Sprintf("node %s is no longer faulty for %d workloads of %d namespaces", node, c.options.Suspects, minNamespaces))...)
		}
		delete(c.suspects, node)
	}
	return all
}

func (c *Cache) nodeEvent(name, kind, reason, note string) []pendingEvent {
	c.logger.V(2).Info(note, "node", name, "reason", reason)
	node := c.node(name)
	if node == nil {
		return nil
	}
	return []pendingEvent{{regarding: node, kind: kind, reason: reason, note: note}}
}

// evident are the nodes against which there is enough to keep other pods away from them:
// as many workloads as make a suspect, of two namespaces at least, that have pods and have
// succeeded elsewhere. Nobody who may make pods in one namespace alone can bring
// that about, nor do pods that fail wherever they are. The caller holds the lock.
func (c *Cache) evident() map[string]bool {
	workloads, namespaces := make(map[string]map[string]bool), make(map[string]map[string]bool)
	add := func(to map[string]map[string]bool, node, name string) {
		if to[node] == nil {
			to[node] = make(map[string]bool)
		}
		to[node][name] = true
	}
	live := make(map[failure.Revision]bool)
	for _, m := range c.ledger.Marks() {
		if !m.Elsewhere {
			continue
		}
		has, known := live[m.Revision]
		if t := c.tracked[m.Revision]; !known && t != nil {
			has = c.hasPods(m.Revision, t)
			live[m.Revision] = has
		}
		if has {
			add(workloads, m.Node, m.Workload)
			add(namespaces, m.Node, record.Namespace(m.Revision))
		}
	}
	nodes := make(map[string]bool)
	for node := range workloads {
		nodes[node] = len(workloads[node]) >= c.options.Suspects && len(namespaces[node]) >= minNamespaces
	}
	return nodes
}

// toTaint are the suspects to taint, which are announced, in order. The caller holds the lock.
func (c *Cache) toTaint() (nodes []string) {
	for node, s := range c.suspects {
		if s.announced && s.tainting {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes[:min(len(nodes), record.MaxSuspects)]
}

// restoreSuspects takes over the suspects of a record. What was seen of them may be gone: their
// taints stay as long as they are suspect by what is known. The caller holds the lock.
func (c *Cache) restoreSuspects(nodes []string) {
	for _, s := range c.suspects {
		s.announced = false
	}
	for _, node := range nodes {
		c.suspects[node] = &suspect{announced: true, tainting: true}
	}
}
