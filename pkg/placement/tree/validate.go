// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Validate holds all that is kept up to date step by step against the same made at once,
// and what is chosen against a survey of all nodes. It is for tests, after every change: a
// view that is out of order by one place decides wrongly much later.
func (v View) Validate() error {
	t := v.Topology
	if t.Stale() || t.version != t.nodes.version || v.Feasibility.version != t.nodes.version || v.Tally.topology != t {
		return errors.New("a part of the view is stale")
	}
	anew := NewTopology(t.nodes, t.levels, t.value)
	var err error
	for id := range t.groups {
		if want, is := anew.groups[id], t.groups[id]; !reflect.DeepEqual(want, is) {
			err = errors.Join(err, fmt.Errorf("group %d is %+v, and should be %+v", id, is, want))
		}
	}
	m := v.Feasibility.mask(t)
	if want := v.Feasibility.newMask(t, false); !reflect.DeepEqual(m, want) {
		err = errors.Join(err, fmt.Errorf("the mask is %+v, and should be %+v", m, want))
	}
	all, byReason := 0, make([]int, len(v.Feasibility.reasons))
	for _, a := range v.Feasibility.answers {
		if a.refuses() {
			all++
			byReason[a-refused]++
		}
	}
	if all != v.Feasibility.refused || !slices.Equal(byReason, v.Feasibility.reasons) {
		err = errors.Join(err, fmt.Errorf("%d nodes are counted as refused, by reason %d, not %d, %d", v.Feasibility.refused, v.Feasibility.reasons, all, byReason))
	}
	err = errors.Join(err, v.Tally.validate())
	if m.open[0] == 0 || err != nil {
		return err
	}
	if is, want := v.descend(m, ^0), v.Rank(true)[0].Node; is != want {
		err = fmt.Errorf("node %q is chosen, and %q should be", t.nodes.Name(is), t.nodes.Name(want))
	}
	return err
}

func (t *Tally) validate() error {
	anew := t.over(t.topology)
	var err error
	if len(anew.branches) != len(t.branches) {
		err = fmt.Errorf("%d branches have something known of them, not %d", len(t.branches), len(anew.branches))
	}
	for id, want := range anew.branches {
		is := t.branch(id)
		packs := t.topology.packs(&t.topology.groups[id])
		if is.sums != want.sums || !is.listed.Equal(&want.listed.Set) || !is.apart.Equal(&want.apart) {
			err = errors.Join(err, fmt.Errorf("branch %d is %+v, and should be %+v", id, is, want))
		}
		same := len(is.classes) == len(want.classes)
		for i := 0; same && i < len(want.classes); i++ {
			a, b := &is.classes[i], &want.classes[i]
			same = a.key.compare(&b.key, packs) == 0 && a.members.Equal(&b.members)
		}
		if !same {
			err = errors.Join(err, fmt.Errorf("branch %d has the classes %+v, and should have %+v", id, is.classes, want.classes))
		}
	}
	return err
}
