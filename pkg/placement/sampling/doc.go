// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sampling chooses some of many nodes to decide about: some of the groups that they are
// in, and of each of these some nodes, drawn at random or in turn until as many fit as are wanted.
// It is Vela's two-level sampling, whose groups are clusters with an agent each; here they are the
// nodes of one value of a label.
//
//   - share.go: how many groups, and how many nodes of one
//   - draw.go: which, in one draw
//   - sampler.go: draws until enough fit, or time is up
//
// What is decided about a sample is as good as the sample. With all groups in it and two or more
// nodes of each, drawn at random, no node gets more than a few pods above the mean, however many
// there are (see TestSamplesLeaveNodesNearlyEven). The tree over all nodes gets none.
//
// In turn is worse than at random where pods of a workload come to see a group in a rhythm: they
// can be shown the same nodes again and again (see TestTurnsCanShowTheSameNodes).
package sampling
