// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"
)

// tally says of each kind of failure, by name, on how many nodes it shows, and whether it
// is the workload's own. What shows on no node is dropped when it is decided.
type tally []kind

type kind struct {
	name  string
	nodes int
	// own says that failures of the kind are the workload's own.
	own bool
}

func (t tally) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(t, name, func(k kind, name string) int { return strings.Compare(k.name, name) })
}

func (t tally) isOwn(name string) bool {
	i, found := t.find(name)
	return found && t[i].own
}

// count adds nodes to a kind.
func (t *tally) count(name string, nodes int) {
	i, found := t.find(name)
	if !found {
		*t = slices.Insert(*t, i, kind{name: name})
	}
	(*t)[i].nodes += nodes
}

// decide finds the kinds that show on so many nodes at least; with 0 for it there are
// none. It returns those of which that is news.
func (t *tally) decide(least int) (news []string) {
	for i := range *t {
		k := &(*t)[i]
		if own := least > 0 && k.nodes >= least; own != k.own {
			k.own = own
			news = append(news, k.name)
		}
	}
	*t = slices.DeleteFunc(*t, func(k kind) bool { return k.nodes == 0 })
	return news
}
