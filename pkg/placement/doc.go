// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement holds the nouns shared by the placement algorithms: the node
// and its tally. Its sub-packages are the algorithms:
//
//   - level: one placement preference, and the syntax in which people write it
//   - nesting: how the levels of a list nest in one cluster
//   - limit: the most pods of one revision in one domain
//   - tree: the spread tree, and the parts of it that workloads share
//   - members, pile: sets of branches with their loads, and how many of their pods are misplaced
//   - ordinal: the order in which the pods of a branch came
//   - plan: which pods should move for a workload to be even
//   - reschedule, reconnect: when a failed pod is tried elsewhere, and which pod stays when a node comes back
//   - drawing: the tree and a decision, as text
//   - simulation: one workload decided alone
//   - failure: the nodes on which a workload has failed of late
//   - hostport: the ports that a node keeps for itself, and their syntax
//   - lifetime, stagger: nodes that end at a known time, leases of pods on them, and ends that are not all at once
//   - constraint: one condition on a node, in Docker's language
//   - allocation: the order of all pods of several tenants, by what is reserved for each
//   - eviction: which pods of such an order make way for one that comes before them
//   - identity: the numbers of pods of which so many are to run
//   - platform: what a program was built for
//   - syntax: how the languages of annotations refuse what they cannot read
//   - oracle: the same decisions by brute force, for tests
//
// Everything below this folder is pure. It uses no Kubernetes library, no clock and no
// logger. Apart from tests, it imports only the standard library and packages of this
// folder. No decision depends on the order of a map: the same input gives the same answer.
package placement
