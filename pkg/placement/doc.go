// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement holds the nouns shared by the placement algorithms: the node
// and its tally. Its sub-packages are the algorithms:
//
//   - level: one placement preference, and the syntax in which people write it
//   - tree: the spread tree, and the parts of it that workloads share
//   - simulation: one workload decided alone
//   - failure: the nodes on which a workload has failed of late
//   - hostport: the ports that a node keeps for itself, and their syntax
//   - constraint: one condition on a node, in Docker's language
//   - platform: what a program was built for
//   - syntax: how the languages of annotations refuse what they cannot read
//   - oracle: the same decisions by brute force, for tests
//
// Everything below this folder is pure. It knows no Kubernetes, no clock and no
// logger, imports the standard library only, and never ranges over a map to
// decide: the same input gives the same answer.
package placement
