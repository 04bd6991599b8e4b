// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failure remembers on which nodes a workload has failed of late.
//
// The Ledger records what became of a revision's pods, and returns a placement.Record
// for each node:
//
//	              Fail        Fail … the threshold           the window
//	no record ──────────► open ──────────► faulty ────────────────────────► half-open
//	    ▲                  │  Succeed                      Succeed             │
//	    └──────────────────┴──────────────────◄────────────────────────────────┘
//
// It has one rule for time: a failure at t counts at any time before t + window, and
// no longer at that very moment. (SwarmKit has two that differ there: what it counts
// is still counted at that moment, but forgotten when another failure is recorded.)
// A time in the future counts as now. Nothing depends on how often something is recorded,
// nor on the order, as long as a pod's node is recorded before its success.
//
// An error that the revision shows on more than half of the nodes it was tried on,
// and on two at least, is its own: it marks no node, from the first on, for as long as
// that is so. The rest is asked once more, by class: a program that ends with another
// number each time shows one error, and not many. Nor is a node marked as long as the revision was tried on no other.
//
// That is about blame: marks become Events. Which node is the better choice is another
// question, and there no failure is left out: a workload of one pod that two
// bad nodes refuse has seen nothing else, and would go to and fro between them for ever.
// But nodes that are faulty by the workload's own errors alone are all equally so.
//
// A revision that has not failed is not in the ledger and costs nothing. One that has
// is there, with its pods, until no failure of it counts for anything any more. The
// ledger bounds itself: no failure is remembered for longer than Memory, nor more of a
// revision on one node than it takes to compare faulty nodes.
//
// There is no clock and no lock: both belong to the caller.
package failure
