// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stagger is the controller that gives the nodes of a pool ends on several days, and takes them out of service when they come.
//
// It promises that of one domain no more nodes are out of service than may be, however many ends have come: those that wait keep taking pods.
// A node is out of service from when it is cordoned until it is back by another boot, or gone.
//
//	in service ── its end comes ──► cordoned ── its pods are moved, or time is up ──► waits for a reboot ── another boot ──► in service
//
// Pods are moved by the controller of drains, which does so with all cordoned nodes. The reboot is for others: kured, Karpenter, Cluster API.
// They are told by a condition and an annotation of the node.
//
// All that is known is written on the nodes, so that a restart changes no end: see clusterview.EndIsBy and clusterview.UpSince. Where a clock
// jumps, nothing happens: a node is taken out of service only if it has reported itself since its end, left to be rebooted with pods on it
// only if it has since, and given no end while it runs since a time that is still to come.
//
//   - options.go: which nodes, and when
//   - controller.go: the look at all of them
//   - node.go: what is written on one
package stagger
