// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// subject is a tree under test beside what it should know, and the filters it asks.
type subject struct {
	*cluster
	t    *rapid.T
	tree *simulation.Tree
	// answers is what the filters told the tree since the node last changed.
	answers map[string]bool
	// onAsk, if set, sees every question before it is answered.
	onAsk func(node string)
}

func grow(t *rapid.T, c *cluster) *subject {
	s := &subject{cluster: c, t: t, tree: simulation.New(c.levels), answers: make(map[string]bool)}
	s.tree.Request = c.request
	s.tree.SetRule(c.rule)
	for _, n := range c.nodes {
		s.tree.Set(n)
	}
	s.validate()
	return s
}

func (s *subject) validate() {
	s.t.Helper()
	if err := s.tree.Validate(); err != nil {
		s.t.Fatalf("the tree is broken: %v", err)
	}
}

// fits is what the tree asks: never twice without a change in between.
func (s *subject) fits(name string) bool {
	if s.index(name) < 0 {
		s.t.Fatalf("the filters are asked about %q, which does not exist", name)
	}
	if _, asked := s.answers[name]; asked {
		s.t.Fatalf("the filters are asked about %q again, and nothing has changed", name)
	}
	if s.onAsk != nil {
		s.onAsk(name)
	}
	s.answers[name] = s.hasRoom(name)
	return s.answers[name]
}

func (s *subject) hasRoom(name string) bool { return s.room[name] > 0 }

func (s *subject) index(name string) int {
	return slices.IndexFunc(s.nodes, func(n placement.Node) bool { return n.Name == name })
}

// set adds or changes a node in the tree and beside it.
func (s *subject) set(n placement.Node, room int64) {
	s.forget(n.Name)
	s.room[n.Name] = room
	if i := s.index(n.Name); i >= 0 {
		s.nodes[i] = n
	} else {
		s.nodes = append(s.nodes, n)
	}
	s.tree.Set(n)
	s.validate()
}

func (s *subject) remove(name string) {
	s.forget(name)
	s.nodes = slices.DeleteFunc(s.nodes, func(n placement.Node) bool { return n.Name == name })
	s.tree.Remove(name)
	s.validate()
}

// add counts pods that came, or negative went.
func (s *subject) add(name string, d placement.Tally) {
	s.forget(name)
	i := s.index(name)
	s.nodes[i].Tally = s.nodes[i].Tally.Add(d)
	s.nodes[i].Unproven = max(0, s.nodes[i].Unproven+d.Revision)
	s.nodes[i].Usage = s.nodes[i].Usage.Add(s.requested(d.All))
	s.room[name] -= d.All
	s.tree.Add(name, d)
	s.validate()
}

// fare changes a node's record. What the filters said holds.
func (s *subject) fare(name string, r placement.Record) {
	s.nodes[s.index(name)].Record = r
	s.tree.SetRecord(name, r)
	s.validate()
}

func (s *subject) setRule(rule placement.Faults) {
	s.rule = rule
	s.tree.SetRule(rule)
	s.validate()
}

func (s *subject) recheck(name string, room int64) {
	s.forget(name)
	s.room[name] = room
	s.tree.Recheck(name)
	s.validate()
}

func (s *subject) forget(name string) { delete(s.answers, name) }

// next holds Next to the oracle's pick.
func (s *subject) next() (string, bool) {
	s.t.Helper()
	want, wantOK := oracle.Pick(s.levels, s.rule, s.nodes, s.request, s.hasRoom)
	got, ok := s.tree.Next(s.fits)
	if got != want || ok != wantOK {
		s.t.Fatalf("Next is %q, %v; the oracle picks %q, %v\n%s", got, ok, want, wantOK, s.tree)
	}
	s.validate()
	return got, ok
}

// requested is what so many pods request.
func (s *subject) requested(pods int64) (u placement.Usage) {
	for range pods {
		u = u.Add(s.request)
	}
	for range -pods {
		u = u.Sub(s.request)
	}
	return u
}

func (s *subject) anyNode() placement.Node {
	return s.nodes[rapid.IntRange(0, len(s.nodes)-1).Draw(s.t, "node")]
}

var onePod = placement.Tally{Revision: 1, Workload: 1, All: 1}

// change does one random thing that happens to a cluster.
func (s *subject) change() {
	kind := rapid.IntRange(0, 9).Draw(s.t, "change")
	if len(s.nodes) == 0 {
		kind = 0
	}
	switch kind {
	case 0:
		// A name from a small range: sometimes new, sometimes one that was removed.
		name := "n" + strconv.Itoa(rapid.IntRange(0, 60).Draw(s.t, "name"))
		s.set(s.drawNode(s.t, name), drawRoom(s.t))
	case 1:
		s.set(s.drawNode(s.t, s.anyNode().Name), drawRoom(s.t))
	case 2:
		s.remove(s.anyNode().Name)
	case 3:
		s.add(s.anyNode().Name, s.drawTally(s.t))
	case 4:
		s.loseSome(s.anyNode())
	case 5:
		s.recheck(s.anyNode().Name, drawRoom(s.t))
	case 6:
		for _, n := range s.nodes {
			s.forget(n.Name)
			if oneIn(s.t, 3, "other room") {
				s.room[n.Name] = drawRoom(s.t)
			}
		}
		s.tree.RecheckAll()
		s.validate()
	case 7:
		if name, ok := s.next(); ok {
			s.add(name, onePod)
		}
	case 8:
		s.fare(s.anyNode().Name, drawRecord(s.t))
	case 9:
		s.setRule(drawRule(s.t))
	}
}

// loseSome lets pods go, as many of each kind as leaves a tally that can be.
func (s *subject) loseSome(n placement.Node) {
	revision := rapid.Int64Range(0, n.Tally.Revision).Draw(s.t, "lost of the revision")
	others := rapid.Int64Range(0, n.Tally.Workload-n.Tally.Revision).Draw(s.t, "lost of other revisions")
	s.add(n.Name, placement.Tally{}.Sub(placement.Tally{Revision: revision, Workload: revision + others, All: revision + others}))
}

// Whatever has happened to a cluster, the next pod goes where the oracle, who sees only the present, would put it.
func TestNextIsTheOraclesPick(t *testing.T) {
	checkShare(t, 35, func(t *rapid.T) {
		s := grow(t, drawCluster(t, ordinary(t)))
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			s.change()
			if oneIn(t, 2, "decide") {
				s.next()
			}
		}
		s.next()
		if known := s.tree.Len(); known > len(s.nodes) {
			t.Errorf("the tree has %d nodes, the cluster %d", known, len(s.nodes))
		}
	})
}

// A batch is the same as its pods decided one by one.
func TestPlaceIsTheOraclesBatch(t *testing.T) {
	checkShare(t, 20, func(t *rapid.T) {
		s := grow(t, drawCluster(t, ordinary(t)))
		k := rapid.IntRange(0, 25).Draw(t, "k")
		want := oracle.Place(s.levels, s.rule, s.nodes, k, s.request, func(name string, placed int) bool { return int64(placed) < s.room[name] })
		got := s.place(k)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("placed otherwise than the oracle (-want +got):\n%s\n%s", diff, s.tree)
		}
		for _, name := range got {
			i := s.index(name)
			s.nodes[i].Tally = s.nodes[i].Tally.Add(onePod)
		}
		for _, n := range s.nodes {
			if tally, ok := s.tree.Tally(n.Name); ok && tally != n.Tally {
				t.Errorf("the tree counts %v on %s, of which %v are true", tally, n.Name, n.Tally)
			}
		}
	})
}

// place lets the tree decide a batch under filters that see its pods.
func (s *subject) place(k int) []string {
	before := make(map[string]int64)
	for _, n := range s.nodes {
		before[n.Name] = n.Tally.Revision
	}
	asked := make(map[string]int64)
	placed := s.tree.Place(k, func(name string) bool {
		tally, ok := s.tree.Tally(name)
		if !ok {
			s.t.Fatalf("the filters are asked about %q, which is not in the tree", name)
		}
		if at, ok := asked[name]; ok && at == tally.Revision {
			s.t.Fatalf("the filters are asked about %q again, and no pod has come to it", name)
		}
		asked[name] = tally.Revision
		return tally.Revision-before[name] < s.room[name]
	})
	s.validate()
	return placed
}

// What is promised of a batch, said without the order of its pods.
func TestPlaceKeepsThePromise(t *testing.T) {
	checkShare(t, 15, func(t *rapid.T) {
		s := grow(t, drawCluster(t, size{levels: 3, nodes: 7, healthy: true}))
		k := rapid.IntRange(1, 6).Draw(t, "k")
		placed := s.place(k)
		if err := oracle.CheckPromise(s.levels, s.nodes, k, func(name string) int { return int(s.room[name]) }, placed); err != nil {
			t.Errorf("%q: %v\n%s", placed, err, s.tree)
		}
	})
}

// Rank has all nodes that fit, each once, class after class, and Next's node first.
// The best class is the nodes that Pick might return under other names.
func TestRanksBestClassIsTheOracles(t *testing.T) {
	checkShare(t, 10, func(t *rapid.T) {
		s := grow(t, drawCluster(t, ordinary(t)))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			s.change()
		}
		var best, all, feasible []string
		class := 0
		for _, r := range s.tree.Rank(s.fits) {
			if r.Class != class && r.Class != class+1 {
				t.Fatalf("class %d comes after class %d", r.Class, class)
			}
			class = r.Class
			all = append(all, r.Name)
			if class == 0 {
				best = append(best, r.Name)
			}
		}
		if name, ok := s.next(); ok && all[0] != name {
			t.Errorf("Next is %q, and Rank begins with %q", name, all[0])
		}
		slices.Sort(best)
		if want := oracle.BestClass(s.levels, s.rule, s.nodes, s.request, s.hasRoom); !slices.Equal(want, best) {
			t.Fatalf("the best class is not the oracle's (-want +got):\n%s\n%s", cmp.Diff(want, best), s.tree)
		}
		for _, n := range s.nodes {
			if _, ok := s.tree.Tally(n.Name); ok && s.hasRoom(n.Name) {
				feasible = append(feasible, n.Name)
			}
		}
		slices.Sort(feasible)
		slices.Sort(all)
		if !slices.Equal(feasible, all) {
			t.Errorf("ranked are other nodes than those that fit (-want +got):\n%s", cmp.Diff(feasible, all))
		}
	})
}

// A decision asks only where the answer can decide, and the best node of a leaf first.
func TestNextAsksOnlyWhatDecides(t *testing.T) {
	checkShare(t, 10, func(t *rapid.T) {
		s := grow(t, drawCluster(t, ordinary(t)))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			s.change()
		}
		for range 3 {
			s.nextWithReason()
			if len(s.nodes) > 0 {
				s.recheck(s.anyNode().Name, drawRoom(t))
			}
		}
	})
}

// nextWithReason decides, and then again, for which nothing needs to be asked.
func (s *subject) nextWithReason() {
	s.onAsk = func(name string) {
		if oracle.MayAsk(s.levels, s.rule, s.nodes, s.request, s.answered) != name {
			s.t.Fatalf("asked about %q without a reason; answers so far %v\n%s", name, s.answers, s.tree)
		}
	}
	name, ok := s.next()
	s.onAsk = func(asked string) { s.t.Fatalf("asked about %q to decide the same again\n%s", asked, s.tree) }
	if again, okAgain := s.next(); again != name || okAgain != ok {
		s.t.Errorf("Next is %q and then %q", name, again)
	}
	s.onAsk = nil
}

func (s *subject) answered(name string) (fits, known bool) {
	fits, known = s.answers[name]
	return fits, known
}
