// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle decides what package tree decides, in the plainest way there is:
// for each pod it scans all nodes, sums every branch from nothing and compares
// fractions as fractions. It remembers nothing between decisions and shares no code
// with the tree, so that a mistake has to be made twice to go unseen.
//
// Pick and Place say which node; Rank says in which order; CheckPromise does not decide
// at all but states the promise behind the decisions, and tries every placement
// there is for one that keeps it better. MayAsk says which nodes a decision has any
// reason to ask the filters about.
//
// It is for tests. Its cost is that of all nodes for each pod.
package oracle
