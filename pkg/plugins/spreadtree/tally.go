// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// tally is that of a batch, and what it shows.
type tally struct {
	batch
	*tree.Tally
	pods       uint64 // the version of the index whose pods it shows
	faultsSeen faultsSeen
	faults     clusterview.Faults // as it was used last

	// needs are those of its last pod, "" if what the filters said to it was not to be kept.
	needs clusterview.Needs
	// undecided has a sentence on each level of its topology that decides nothing.
	undecided []string
	looked    looked // the ReplicaSet or the like of the last pod that was looked at, see notices.go
	rebuilt   bool   // when it was brought up to date last
	counted   bool   // count is of the tally as it is
	count     misplaced
}

// faultsSeen is what a tally knows of its revision's faults.
type faultsSeen struct {
	version  uint64
	recorded bool // there is a record
}

// refresh has the tally show the pods and the faults as they are, over the nodes as they are.
func (t *tally) refresh(in *trees, faults clusterview.Faults) {
	topology := in.topology(t.levels)
	nodes, now, known := in.index.Since(t.countsAs.Workload, t.pods)
	t.undecided = topology.undecided
	t.rebuilt = !known || t.Tally == nil || t.Topology() != topology.Topology || faults == nil && t.faultsSeen.recorded
	if t.rebuilt {
		t.Tally, t.faultsSeen = tree.NewTally(topology.Topology), faultsSeen{}
		nodes, _, _ = in.index.Since(t.countsAs.Workload, 0)
	}
	t.pods, t.faults, t.counted = now, faults, false
	rule := placement.Faults{}
	if faults != nil {
		rule = faults.Rule()
	}
	t.SetRule(rule) // before the pods: what counts under another rule is counted anew
	for _, node := range nodes {
		revision, workload := in.index.On(t.countsAs, node)
		if in.countAll {
			revision = workload
		}
		t.SetPods(node, revision, workload)
	}
	if faults != nil {
		t.refreshFaults(in.index.Nodes(), faults)
	}
}

// refreshFaults brings the records up to date.
func (t *tally) refreshFaults(nodes *tree.Nodes, faults clusterview.Faults) {
	names, anew, version := faults.Changed(t.id, t.faultsSeen.version)
	if anew {
		names = nodes.Names()
	}
	t.faultsSeen.version = version
	for _, name := range names {
		record := faults.Record(t.id, name)
		t.faultsSeen.recorded = t.faultsSeen.recorded || record != placement.Record{}
		if node, known := nodes.Find(name); known {
			t.SetRecord(node, record)
		}
	}
}

// placedBy is a pod's levels in the order in which the tally has them.
func (t *tally) placedBy(levels clusterview.Levels) clusterview.Levels {
	return levels.InOrder(t.Topology().Levels())
}
