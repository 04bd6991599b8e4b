// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// A tenant who may make pods can make a new workload that fails each second, and one bad
// image on many nodes is a failure on each of them. These bounds hold for what is remembered.
const (
	// maxRevisions bounds the revisions that are followed.
	maxRevisions = 5000
	// maxPerNamespace bounds those of one namespace.
	maxPerNamespace = 500
	// maxFailures bounds the failures of all revisions on all nodes.
	maxFailures = 100_000
	// maxEntries bounds the pairs of a revision and a node of which anything is known: short-lived pods visit all nodes in time. Those with
	// pods or failures are kept all the same. Some 300 bytes each.
	maxEntries = 200_000
)

// bound forgets what is too much, by the rule of package record. It is not called where a
// revision enters the ledger: all pods of its family are recorded there, and these may have failed
// for a revision that was forgotten just now. The caller holds the lock.
func (c *Cache) bound() {
	c.boundRevisions()
	c.boundFailures()
	if c.ledger.Entries() > c.maxEntries {
		for of := range c.tracked {
			c.ledger.Trim(of)
		}
	}
}

func (c *Cache) boundRevisions() {
	if len(c.tracked) <= min(maxRevisions, maxPerNamespace) {
		return
	}
	claims := c.claims(func(failure.Revision) int { return 1 })
	record.Order(claims)
	for i, claim := range claims {
		if i < maxRevisions && claim.UpTo <= maxPerNamespace {
			continue
		}
		c.logger.V(2).Info("Forgetting where a workload failed: too many have", "workload", claim.Of.Workload, "revision", claim.Of.Revision,
			"maxPerNamespace", maxPerNamespace, "max", maxRevisions)
		c.forget(claim.Of)
	}
}

func (c *Cache) boundFailures() {
	all := c.ledger.Failures()
	if all <= c.maxFailures {
		return
	}
	// Some room is made: the next failure must not have all of them looked at again.
	most := c.maxFailures - c.maxFailures/16
	for of := range c.tracked {
		c.ledger.Shorten(of)
	}
	if c.ledger.Failures() > most {
		_, rest, room := record.Grant(c.claims(c.ledger.FailuresOf), most)
		for _, claim := range rest {
			room -= c.keepNewest(claim.Of, room)
		}
	}
	c.logger.V(2).Info("Forgetting failures: there are too many", "failures", all, "max", c.maxFailures, "kept", c.ledger.Failures())
	c.wake()
}

// keepNewest forgets a revision's failures on all nodes but those that failed last, and tells
// how many remain.
func (c *Cache) keepNewest(of failure.Revision, room int) (taken int) {
	captured, _ := c.ledger.Capture(of)
	nodes, taken := record.Cut(captured.Failed(), room, func(n *failure.NodeHistory) int { return len(n.Failures) })
	if len(nodes) == 0 {
		c.forget(of)
		return 0
	}
	keep := make(map[string]bool, len(nodes))
	for i := range nodes {
		keep[nodes[i].Node] = true
	}
	c.ledger.Keep(of, keep)
	return taken
}

// claims are those of the revisions that are followed, in no order.
func (c *Cache) claims(sizeOf func(failure.Revision) int) []record.Claim {
	claims := make([]record.Claim, 0, len(c.tracked))
	for of, t := range c.tracked {
		claims = append(claims, record.Claim{Of: of, Failed: t.failed, Size: sizeOf(of)})
	}
	return claims
}

func (c *Cache) forget(of failure.Revision) {
	c.ledger.Forget(of)
	delete(c.tracked, of)
	c.wake()
}
