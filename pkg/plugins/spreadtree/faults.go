// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// heard is what a tree has been told of its revision's faults.
type heard struct {
	// told is false in a profile that keeps no faults, and for pods without them.
	told bool
	// version is that of the faults which the tree shows.
	version uint64
	// recorded: there are records, so that a node that changes has to be asked for its
	// own. It is false for the many revisions that never failed anywhere.
	recorded bool
}

// hear has the tree judge by the rule of the faults, and returns the nodes whose
// records may have changed since the last time. The faults are nil where nobody keeps any.
func (p *planted) hear(of clusterview.Identity, faults clusterview.Faults) []string {
	if p.shared() {
		// By batches without records. They are judged by the rule all the same: to
		// change it in an offshoot would take a walk over all its nodes.
		if faults != nil {
			p.tree.SetRule(faults.Rule())
		}
		return nil
	}
	if told := faults != nil; told != p.heard.told {
		// There are records in the tree that nobody keeps, or pods that it has taken for
		// unproven by itself: all nodes are told to it anew.
		p.version, p.heard = 0, heard{told: told}
	}
	if faults == nil {
		p.tree.SetRule(placement.Faults{})
		return nil
	}
	p.tree.SetRule(faults.Rule())
	nodes, anew, version := faults.Changed(of, p.heard.version)
	if anew {
		p.version = 0
	}
	p.heard.version = version
	p.heard.recorded = p.heard.recorded || anew || len(nodes) > 0
	return nodes
}

// hasRecords reports that a revision has failed somewhere. Its pods may all be gone:
// then no node has any, and still they are not alike.
func hasRecords(of clusterview.Identity, faults clusterview.Faults) bool {
	if faults == nil {
		return false
	}
	nodes, anew, _ := faults.Changed(of, 0)
	return anew || len(nodes) > 0
}
