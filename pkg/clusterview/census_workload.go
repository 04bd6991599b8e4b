// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"
	"iter"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// register is the workloads of which pods count. A workload or revision without any
// is not in it, so that it is no larger than the cluster.
type register map[Workload]*workload

// workload is where the pods of one workload stand.
type workload struct {
	key       Workload
	revisions []*revision
	// stands are by the serial of their nodes, those of one node side by side. A
	// map was rejected: most workloads have a pod or two, and for these a map
	// takes ten times the memory.
	stands []stand
}

// revision is one identity, kept once for all its pods.
type revision struct {
	workload        *workload
	owner, revision string
	pods            int64
}

// stand is the pods of one revision on one node.
type stand struct {
	node *count
	of   *revision
	pods int64
}

// join counts a pod on a node.
func (r register) join(n *count, id Identity) *revision {
	w, ok := r[id.Workload]
	if !ok {
		w = &workload{key: id.Workload}
		r[id.Workload] = w
	}
	of := w.revision(id)
	of.pods++
	i := w.find(n)
	for ; i < len(w.stands) && w.stands[i].node == n; i++ {
		if w.stands[i].of == of {
			w.stands[i].pods++
			return of
		}
	}
	w.stands = slices.Insert(w.stands, i, stand{node: n, of: of, pods: 1})
	return of
}

// leave takes a pod of a revision off a node. A nil revision is that of a pod that did
// not count.
func (r register) leave(n *count, of *revision) {
	if of == nil {
		return
	}
	w := of.workload
	i := w.find(n)
	for w.stands[i].of != of {
		i++
	}
	if w.stands[i].pods--; w.stands[i].pods == 0 {
		w.stands = slices.Delete(w.stands, i, i+1)
	}
	if of.pods--; of.pods == 0 {
		w.revisions = slices.DeleteFunc(w.revisions, func(r *revision) bool { return r == of })
	}
	if len(w.revisions) == 0 {
		delete(r, w.key)
	}
}

// revision returns that of an identity, which is a new one if there is none.
func (w *workload) revision(id Identity) *revision {
	for _, r := range w.revisions {
		if r.owner == id.Owner && r.revision == id.Revision {
			return r
		}
	}
	of := &revision{workload: w, owner: id.Owner, revision: id.Revision}
	w.revisions = append(w.revisions, of)
	return of
}

// find returns where the stands on a node begin, or would.
func (w *workload) find(n *count) int {
	i, _ := slices.BinarySearchFunc(w.stands, n.serial, func(s stand, serial uint64) int {
		return cmp.Compare(s.node.serial, serial)
	})
	return i
}

// tally is what stands on a node, as an identity of the workload sees it. A nil
// workload stands nowhere.
func (w *workload) tally(n *count, of Identity) placement.Tally {
	if w == nil {
		return placement.Tally{All: n.counted}
	}
	return w.tallyAt(w.find(n), n, of)
}

// tallyAt is tally where the stands on the node begin at i.
func (w *workload) tallyAt(i int, n *count, of Identity) placement.Tally {
	t := placement.Tally{All: n.counted}
	for ; i < len(w.stands) && w.stands[i].node == n; i++ {
		s := &w.stands[i]
		t.Workload += s.pods
		if s.of.owner != of.Owner || s.of.revision == of.Revision {
			t.Revision += s.pods
		}
	}
	return t
}

// tallies is what stands on the nodes of the workload, none where it does not stand.
func (w *workload) tallies(of Identity) iter.Seq2[*count, placement.Tally] {
	return func(yield func(*count, placement.Tally) bool) {
		if w == nil {
			return
		}
		for i := 0; i < len(w.stands); {
			n := w.stands[i].node
			if !yield(n, w.tallyAt(i, n, of)) {
				return
			}
			for i < len(w.stands) && w.stands[i].node == n {
				i++
			}
		}
	}
}
