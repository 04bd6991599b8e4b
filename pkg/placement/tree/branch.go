// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// branch is the nodes of one value at one level, or the root, which is all nodes.
// A leaf holds nodes, any other branch holds branches.
type branch struct {
	tree   *Tree
	parent *branch
	value  string
	share  int64 // the weight of value at the parent's level; 1 where there are none
	below  fork
	pos    int // in parent.children

	sums
	standing standing

	nodes queue // leaf
	// toAsk has all unasked nodes of a leaf in it, and some that are so no more: to
	// find the one node of thousands that has changed must not take a walk over all.
	toAsk    []*node
	children siblings           // not leaf
	byValue  map[string]*branch // children by value; looked up, never ranged over
}

// sums are what the nodes below a branch add up to, or one node's part in it.
type sums struct {
	// An unready node is not in tally and history: its pods do not run.
	tally   placement.Tally
	history history
	// all counts the nodes, open those that the filters have not refused, unasked those
	// of them that the filters have not been asked about since the node changed.
	all, open, unasked int
}

func (s *sums) add(o *sums, by int) {
	if by > 0 {
		s.tally = s.tally.Add(o.tally)
	} else {
		s.tally = s.tally.Sub(o.tally)
	}
	if o.history != (history{}) {
		s.history.add(&o.history, by)
	}
	s.all += by * o.all
	s.open += by * o.open
	s.unasked += by * o.unasked
}

// fork is how a branch divides: by the first of the levels still to come, or,
// inside the virtual branch of a level with weights, by the unlisted values of it.
type fork struct {
	levels []level.Level // those still to come; levels[0] divides this branch
	others bool          // this is the virtual branch of levels[0]
}

func (f fork) packs() bool { return f.levels[0].Strategy == level.Pack }

func (b *branch) isLeaf() bool { return len(b.below.levels) == 0 }

// child returns the branch below b for a node's values, growing it if it is new.
func (b *branch) child(values []placement.Value) *branch {
	l := &b.below.levels[0]
	value := values[len(values)-len(b.below.levels)].Text
	share, listed := int64(1), true
	if !b.below.others {
		share, listed = l.Share(value)
		if !listed {
			share = 1
		}
	}
	below := fork{levels: b.below.levels[1:]}
	if !listed && l.HasOthers() {
		value = level.Others
		share, _ = l.Share(level.Others)
		below = fork{levels: b.below.levels, others: true}
	}
	if c, ok := b.byValue[value]; ok {
		return c
	}
	c := &branch{tree: b.tree, parent: b, value: value, share: share, below: below}
	if b.byValue == nil {
		b.byValue = make(map[string]*branch)
	}
	b.byValue[value] = c
	b.children.add(c)
	return c
}

// prune takes an empty branch off b.
func (b *branch) prune(c *branch) {
	b.children.drop(c)
	delete(b.byValue, c.value)
}

// account adds to the sums of b and all branches above. The heaps are out of order
// until settle.
func (b *branch) account(d *sums, by int) {
	for ; b != nil; b = b.parent {
		b.add(d, by)
	}
}

// settle puts b and all branches above it back in their places.
func (b *branch) settle() {
	if b.tree.unsettled {
		return
	}
	b.standing = b.judge()
	for ; b.parent != nil; b = b.parent {
		b.parent.children.fix(b.pos)
		b.parent.standing = b.parent.judge()
	}
}

// settleAll puts all branches below b in their places, and b in none.
func (b *branch) settleAll() {
	for _, c := range b.children {
		c.settleAll()
	}
	b.children.init()
	b.standing = b.judge()
}

// renewAll puts all nodes below b in their places in their leaves.
func (b *branch) renewAll() {
	for _, c := range b.children {
		c.renewAll()
	}
	b.nodes.renewAll()
}

// recheck forgets what the filters said of the nodes below b. It is true if they had
// refused one, and then branches may be out of place.
func (b *branch) recheck() (opened bool) {
	if b.unasked == b.all {
		return false // most of a tree, if little of it has been asked about
	}
	for _, c := range b.children {
		opened = c.recheck() || opened
	}
	if len(b.children) > 0 {
		return opened
	}
	d := sums{open: b.all - b.open, unasked: b.all - b.unasked}
	for i := range b.nodes.places {
		n := b.nodes.at(i)
		n.answer = unasked
		n.queue()
	}
	b.account(&d, +1)
	if d.open > 0 {
		b.nodes.renewAll()
	}
	return d.open > 0
}

func (b *branch) eachNode(f func(*node)) {
	for _, c := range b.children {
		c.eachNode(f)
	}
	for i := range b.nodes.places {
		f(b.nodes.at(i))
	}
}

// compareBranches orders the children of one branch: the one that gets the next
// pod is first. Both must have the same parent.
func compareBranches(a, b *branch) int {
	if c := compareMerits(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a.value, b.value)
}

// compareMerits is compareBranches up to the value.
func compareMerits(a, b *branch) int {
	if c := compareLoad(a, b); c != 0 {
		return c
	}
	return cmp.Compare(b.open, a.open)
}

// compareLoad is compareMerits up to the number of open nodes, which is only
// known for certain when the filters have been asked about all of them.
func compareLoad(a, b *branch) int {
	switch {
	case (a.open > 0) != (b.open > 0):
		return firstIf(a.open > 0, b.open > 0)
	case a.standing != b.standing:
		// A broken zone must not go on swallowing pods because it is the emptiest.
		return cmp.Compare(a.standing, b.standing)
	}
	if c := comparePods(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a.history.unforgiven, b.history.unforgiven)
}

// comparePods orders two branches by the pods of the revision, and then of the workload.
func comparePods(a, b *branch) int {
	if a.parent.below.packs() {
		if a.tally.Revision != b.tally.Revision {
			return cmp.Compare(b.tally.Revision, a.tally.Revision)
		}
		return cmp.Compare(b.tally.Workload, a.tally.Workload)
	}
	if c := compareShares(a.tally.Revision, a.share, b.tally.Revision, b.share); c != 0 {
		return c
	}
	return compareShares(a.tally.Workload, a.share, b.tally.Workload, b.share)
}

// compareShares orders two branches by what each pod's share would be with one pod
// more: (count + 1) / share. Multiplied by both shares it needs no fractions, and
// cannot overflow: a count is far below 2^40 and a share below 2^20.
func compareShares(aCount, aShare, bCount, bShare int64) int {
	return cmp.Compare((aCount+1)*bShare, (bCount+1)*aShare)
}

// firstIf orders what has a property before what has not.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
