// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// Stamp tells the states of a node in the scheduler's snapshots apart, for who
// looks at a node again only when it has changed.
//
// The generation alone does not: in the cycle of a pod group the scheduler puts pods
// on the snapshot's nodes, and takes them away again, without moving it. So the
// pods are part of it: how many there are, and which came last.
type Stamp struct {
	generation int64
	listed     int
	// last is the framework's note of the pod, which is made for a node and not
	// altered there. To look at the pod would be one more wait for memory, for all nodes
	// and every pod that is placed.
	last fwk.PodInfo
}

// unstamped is the stamp of no node.
var unstamped = Stamp{generation: -1}

// StampOf is the stamp of a node as it is.
func StampOf(info fwk.NodeInfo) Stamp {
	s, pods := Stamp{generation: info.GetGeneration()}, info.GetPods()
	if s.listed = len(pods); s.listed > 0 {
		s.last = pods[s.listed-1]
	}
	return s
}

// Stale reports that a node may not be as it was when it was stamped.
func (s Stamp) Stale(info fwk.NodeInfo) bool { return s != StampOf(info) }
