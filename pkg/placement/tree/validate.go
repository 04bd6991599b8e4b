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
	if b.parent != nil && len(b.nodes) == 0 && len(b.children) == 0 {
		return fmt.Errorf("branch %q is empty", b.value)
	}
	var want sums
	err := b.validateNodes(&want, visit)
	for i, c := range b.children {
		err = errors.Join(err, c.validate(visit))
		if c.pos != i || c.parent != b || b.byValue[c.value] != c {
			err = errors.Join(err, fmt.Errorf("branch %q is not where it believes to be", c.value))
		}
		if above := b.children[(i-1)/2]; i > 0 && compareBranches(above, c) > 0 {
			err = errors.Join(err, fmt.Errorf("branch %q stands before %q", above.value, c.value))
		}
		want.add(&c.sums, +1)
	}
	if b.sums != want {
		err = errors.Join(err, fmt.Errorf("branch %q adds up to %+v, not %+v", b.value, want, b.sums))
	}
	if stands := b.judge(); b.standing != stands {
		err = errors.Join(err, fmt.Errorf("branch %q stands at %d, not %d", b.value, stands, b.standing))
	}
	return err
}

func (b *branch) validateNodes(want *sums, visit func(*node) error) error {
	var err error
	for i, n := range b.nodes {
		err = errors.Join(err, visit(n))
		if n.answer == unasked && !slices.Contains(b.toAsk, n) {
			err = errors.Join(err, fmt.Errorf("node %q has not been asked about and never will be", n.Name))
		}
		if n.pos != i || n.leaf != b {
			err = errors.Join(err, fmt.Errorf("node %q is not where it believes to be", n.Name))
		}
		if above := b.nodes[(i-1)/2]; i > 0 && compareNodes(above, n) > 0 {
			err = errors.Join(err, fmt.Errorf("node %q stands before %q", above.Name, n.Name))
		}
		part := n.sums()
		want.add(&part, +1)
		if judged := n.judge(); n.verdict != judged {
			err = errors.Join(err, fmt.Errorf("node %q is judged %+v, not %+v", n.Name, judged, n.verdict))
		}
	}
	return err
}
