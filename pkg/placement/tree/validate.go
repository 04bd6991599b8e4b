// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"slices"
)

// Validate checks the tree's invariants. It is for tests, after every change: a
// tree that is out of order by one place decides wrongly much later.
func (t *Tree) Validate() error {
	seen := 0
	err := t.root.validate(func(n *node) error {
		seen++
		if t.nodes[n.Name] != n {
			return fmt.Errorf("node %q hangs in the tree but is not known to it", n.Name)
		}
		return nil
	})
	if err == nil && seen != len(t.nodes) {
		err = fmt.Errorf("%d nodes hang in the tree, %d are known to it", seen, len(t.nodes))
	}
	return err
}

func (b *branch) validate(visit func(*node) error) error {
	if b.parent != nil && b.nodes.len() == 0 && len(b.children) == 0 {
		return fmt.Errorf("branch %q is empty", b.value)
	}
	var want sums
	err := b.validateNodes(&want, visit)
	for i, c := range b.children {
		err = errors.Join(err, c.validate(visit))
		if c.pos != i || c.parent != b || b.byValue[c.value] != c {
			err = errors.Join(err, fmt.Errorf("branch %q is not where it believes to be", c.value))
		}
		if above := b.children[(i-1)/2]; i > 0 && !b.tree.unsettled && compareBranches(above, c) > 0 {
			err = errors.Join(err, fmt.Errorf("branch %q stands before %q", above.value, c.value))
		}
		want.add(&c.sums, +1)
	}
	if b.sums != want {
		err = errors.Join(err, fmt.Errorf("branch %q adds up to %+v, not %+v", b.value, want, b.sums))
	}
	if stands := b.judge(); b.standing != stands && !b.tree.unsettled {
		err = errors.Join(err, fmt.Errorf("branch %q stands at %d, not %d", b.value, stands, b.standing))
	}
	return err
}

func (b *branch) validateNodes(want *sums, visit func(*node) error) error {
	err := b.nodes.validate()
	for i := range b.nodes.places {
		n := b.nodes.at(i)
		err = errors.Join(err, visit(n))
		if n.answer == unasked && !slices.Contains(b.toAsk, n) {
			err = errors.Join(err, fmt.Errorf("node %q has not been asked about and never will be", n.Name))
		}
		if n.leaf != b {
			err = errors.Join(err, fmt.Errorf("node %q is not where it believes to be", n.Name))
		}
		part := n.sums()
		want.add(&part, +1)
		if judged := n.judge(); n.verdict != judged {
			err = errors.Join(err, fmt.Errorf("node %q is judged %+v, not %+v", n.Name, judged, n.verdict))
		}
	}
	return err
}

func (q *queue) validate() error {
	var err error
	for i := range q.places {
		p, n := &q.places[i], q.at(i)
		if n.slot != p.slot || q.place[p.slot] != int32(i) {
			err = errors.Join(err, fmt.Errorf("node %q is not where it believes to be", n.Name))
		}
		if p.merits != n.merits() {
			err = errors.Join(err, fmt.Errorf("node %q is placed by %v and not by %v", n.Name, p.merits, n.merits()))
		}
		if ahead := (i - 1) / ways; i > 0 && p.before(&q.places[ahead]) {
			err = errors.Join(err, fmt.Errorf("node %q stands before %q", q.at(ahead).Name, n.Name))
		}
	}
	name, nodes := "", 0
	for _, n := range q.nodes {
		switch {
		case n == nil:
			continue
		case n.Name <= name && nodes > 0 && !q.shuffled:
			err = errors.Join(err, fmt.Errorf("node %q has a slot after %q", n.Name, name))
		}
		name = n.Name
		nodes++
	}
	if nodes != len(q.places) || len(q.place) != len(q.nodes) {
		err = errors.Join(err, fmt.Errorf("%d nodes with %d slots have %d places", nodes, len(q.place), len(q.places)))
	}
	if 2*nodes < len(q.nodes) {
		err = errors.Join(err, fmt.Errorf("%d slots for %d nodes are mostly gaps", len(q.nodes), nodes))
	}
	return err
}
