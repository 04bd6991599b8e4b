// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"cmp"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// workloads are those of which pods count, by namespace. A workload or revision without any
// is not in it, so that it is no larger than the cluster.
type workloads map[string]map[clusterview.Workload]*workload

// workload is where the pods of one workload stand.
type workload struct {
	key    clusterview.Workload
	serial uint64 // numbers workloads as they come
	// revisions are in the order of their owners, and of their names.
	revisions []*revision
	// onNodes are by the serial of their nodes, those of one node side by side. A
	// map was rejected: most workloads have a pod or two, and for these a map
	// takes ten times the memory.
	onNodes []onNode
	// changes are the nodes on which its pods have come or gone after the version known.
	changes []change
	known   uint64
}

// change is one pod that came to a node, or went.
type change struct {
	node    int32
	version uint64
}

// revision is one identity, kept once for all its pods.
type revision struct {
	workload        *workload
	owner, revision string
	pods            int64
}

// is reports that a revision is that of an identity.
func (r *revision) is(id clusterview.Identity) bool {
	return r.workload.key == id.Workload && r.owner == id.Owner && r.revision == id.Revision
}

// onNode is the pods of one revision on one node.
type onNode struct {
	node *count
	of   *revision
	pods int64
}

// get returns a workload, nil if none of its pods counts.
func (r workloads) get(key clusterview.Workload) *workload { return r[key.Namespace][key] }

// add counts a pod on a node.
func (r workloads) add(n *count, id clusterview.Identity, version uint64) *revision {
	w := r.get(id.Workload)
	if w == nil {
		w = &workload{key: id.Workload, serial: version, known: version - 1}
		if r[id.Workload.Namespace] == nil {
			r[id.Workload.Namespace] = make(map[clusterview.Workload]*workload)
		}
		r[id.Workload.Namespace][id.Workload] = w
	}
	w.note(n, version)
	of := w.revision(id)
	of.pods++
	i := w.find(n)
	for ; i < len(w.onNodes) && w.onNodes[i].node == n; i++ {
		if w.onNodes[i].of == of {
			w.onNodes[i].pods++
			return of
		}
	}
	w.onNodes = slices.Insert(w.onNodes, i, onNode{node: n, of: of, pods: 1})
	return of
}

// remove takes a pod of a revision off a node.
func (r workloads) remove(n *count, of *revision, version uint64) {
	w := of.workload
	w.note(n, version)
	i := w.find(n)
	for w.onNodes[i].of != of {
		i++
	}
	if w.onNodes[i].pods--; w.onNodes[i].pods == 0 {
		w.onNodes = slices.Delete(w.onNodes, i, i+1)
	}
	if of.pods--; of.pods == 0 {
		at, _ := w.findRevision(of.owner, of.revision)
		w.revisions = slices.Delete(w.revisions, at, at+1)
	}
	if len(w.revisions) > 0 {
		return
	}
	if delete(r[w.key.Namespace], w.key); len(r[w.key.Namespace]) == 0 {
		delete(r, w.key.Namespace)
	}
}

// maxExtraChanges bounds the changes that a workload keeps beside twice as many as it has
// entries of nodes: to tell of all entries is no more work than to tell of so many changes.
const maxExtraChanges = 16

func (w *workload) note(n *count, version uint64) {
	w.changes = append(w.changes, change{n.id, version})
	if len(w.changes) > 2*len(w.onNodes)+maxExtraChanges {
		half := len(w.changes) / 2
		w.known = w.changes[half-1].version
		w.changes = slices.Delete(w.changes, 0, half)
	}
}

// since returns the nodes of the changes after a version, or all on which the workload
// has pods. A nil workload has none.
func (w *workload) since(version uint64) (nodes []int32, known bool) {
	switch {
	case w == nil:
		return nil, false
	case version < w.known:
		for i := range w.onNodes {
			if i == 0 || w.onNodes[i-1].node != w.onNodes[i].node {
				nodes = append(nodes, w.onNodes[i].node.id)
			}
		}
		return nodes, false
	}
	for i := len(w.changes) - 1; i >= 0 && w.changes[i].version > version; i-- {
		nodes = append(nodes, w.changes[i].node)
	}
	return nodes, true
}

// revision returns that of an identity, which is a new one if there is none.
func (w *workload) revision(id clusterview.Identity) *revision {
	at, known := w.findRevision(id.Owner, id.Revision)
	if !known {
		w.revisions = slices.Insert(w.revisions, at, &revision{workload: w, owner: id.Owner, revision: id.Revision})
	}
	return w.revisions[at]
}

// findRevision returns where a revision is, or would be.
func (w *workload) findRevision(owner, name string) (at int, known bool) {
	return slices.BinarySearchFunc(w.revisions, owner, func(r *revision, owner string) int {
		return cmp.Or(strings.Compare(r.owner, owner), strings.Compare(r.revision, name))
	})
}

// hasOther reports that there is a revision of an owner beside one, "" for none.
func (w *workload) hasOther(owner, name string) bool {
	if w == nil {
		return false
	}
	at, _ := w.findRevision(owner, "")
	for _, r := range w.revisions[at:] {
		if r.owner != owner || r.revision != name {
			return r.owner == owner
		}
	}
	return false
}

// find returns where the entries of a node begin, or would.
func (w *workload) find(n *count) int {
	i, _ := slices.BinarySearchFunc(w.onNodes, n.serial, func(s onNode, serial uint64) int {
		return cmp.Compare(s.node.serial, serial)
	})
	return i
}

// on counts the pods on a node as an identity of the workload sees them.
func (w *workload) on(n *count, of clusterview.Identity) (revision, workload int64) {
	if w == nil || n == nil {
		return 0, 0
	}
	for i := w.find(n); i < len(w.onNodes) && w.onNodes[i].node == n; i++ {
		s := &w.onNodes[i]
		workload += s.pods
		if s.of.owner != of.Owner || s.of.revision == of.Revision {
			revision += s.pods
		}
	}
	return revision, workload
}
