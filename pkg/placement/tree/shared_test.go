// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// shared is a cluster on which revisions of several workloads are placed, as a scheduler does it: one topology for each list of levels, one
// feasibility for each class of needs. It keeps books of its own, from which the oracle is told.
type shared struct {
	t          *rapid.T
	nodes      *tree.Nodes
	there      map[string]*machine
	lists      [][]level.Level
	topologies []*tree.Topology
	needs      []*tree.Feasibility
	revisions  []*placed
	request    placement.Usage
	ties       bool // there were nodes that tied
}

// machine is a node; values are by property.
type machine struct {
	id      int32
	values  map[string]string
	usage   placement.Usage
	unready bool
	room    int
	// soft is what makes it soft to needs that do not tolerate it.
	soft string
	// ends is the hour in which it ends.
	ends int32
	// refuses are the needs that it does not meet, whatever room it has.
	refuses map[int]bool
	pods    []int // by revision
}

// placed is a revision.
type placed struct {
	workload, levels, needs int
	rule                    placement.Faults
	records                 map[string]placement.Record
	tally                   *tree.Tally
}

const host = "kubernetes.io/hostname"

var properties = []string{"zone", "rack", "row", host}

func drawShared(t *rapid.T) *shared {
	s := &shared{t: t, nodes: tree.NewNodes(0), there: make(map[string]*machine), request: drawUsage(t, 2)}
	s.request.CPU.Allocatable, s.request.Memory.Allocatable = 0, 0
	for range rapid.IntRange(1, 3).Draw(t, "lists of levels") {
		s.lists = append(s.lists, drawLists(t))
	}
	s.topologies = make([]*tree.Topology, len(s.lists))
	for range 2 {
		tolerated := rapid.SampledFrom([]string{"none", "tainted", "marked"}).Draw(t, "tolerated")
		needs := tree.NewFeasibility(s.nodes)
		needs.Tolerates = func(soft string) bool { return soft == tolerated }
		needs.Request = s.request
		s.needs = append(s.needs, needs)
	}
	for range rapid.IntRange(1, 5).Draw(t, "revisions") {
		s.revisions = append(s.revisions, &placed{
			workload: rapid.IntRange(0, 2).Draw(t, "workload"), levels: rapid.IntRange(0, len(s.lists)-1).Draw(t, "levels"),
			needs: rapid.IntRange(0, 1).Draw(t, "needs"), rule: drawRule(t), records: make(map[string]placement.Record),
		})
	}
	for range rapid.IntRange(1, 12).Draw(t, "nodes") {
		s.join()
	}
	return s
}

// drawLists draws levels over the properties, and over as many that no node has as there may be.
func drawLists(t *rapid.T) []level.Level {
	var levels []level.Level
	for _, property := range rapid.Permutation(properties).Draw(t, "properties")[:rapid.IntRange(0, len(properties)).Draw(t, "how many")] {
		l := level.Level{Strategy: level.Spread, Property: level.Property{Label: property}, NodesWithoutKey: level.OwnDomain}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			l.Strategy = level.Pack
		case 1:
			l.Weights = drawWeights(t)
		case 2:
			l.Share = level.Allocatable
		}
		levels = append(levels, drawNodesWithoutKey(t, l))
	}
	if oneIn(t, 4, "deep") {
		for len(levels) < level.MaxLevels {
			levels = append(levels, level.Level{Strategy: level.Spread, Property: level.Property{Label: fmt.Sprint("none-", len(levels))}, NodesWithoutKey: level.OwnDomain})
		}
	}
	return levels
}

// join adds a node, by a name that may have been another one's.
func (s *shared) join() {
	name := "n" + strconv.Itoa(rapid.IntRange(0, 15).Draw(s.t, "name"))
	if s.there[name] == nil {
		s.there[name] = &machine{pods: make([]int, len(s.revisions)), refuses: make(map[int]bool)}
		s.change(name)
	}
}

// change draws a node anew, but for its pods.
func (s *shared) change(name string) {
	m := s.there[name]
	relabelled := m.values == nil || oneIn(s.t, 3, "relabelled")
	if relabelled {
		m.values = map[string]string{host: name}
		for _, property := range properties[:3] {
			if v := rapid.SampledFrom([]string{"-", "a", "b", "c"}).Draw(s.t, property); v != "-" {
				m.values[property] = v
			}
		}
		if oneIn(s.t, 6, "odd host") {
			m.values[host] = "x"
		}
	}
	m.usage, m.unready, m.room = drawUsage(s.t, 3), oneIn(s.t, 6, "unready"), rapid.IntRange(0, 6).Draw(s.t, "room")
	m.soft = rapid.SampledFrom([]string{"", "", "", "tainted", "marked"}).Draw(s.t, "soft")
	m.ends = rapid.SampledFrom([]int32{0, 0, 0, 500_000, 500_001}).Draw(s.t, "ends")
	for i := range s.needs {
		m.refuses[i] = oneIn(s.t, 5, "refuses")
	}
	s.tell(name)
	if relabelled {
		s.nodes.Relabel()
	}
}

// tell has the nodes show one as it is, with the pods on it.
func (s *shared) tell(name string) {
	m := s.there[name]
	m.id = s.nodes.Set(name, tree.Facts{Usage: s.usage(m), Unready: m.unready, Soft: m.soft, Ends: m.ends})
}

func (s *shared) usage(m *machine) placement.Usage {
	u := m.usage
	for _, pods := range m.pods {
		for range pods {
			u = u.Add(s.request)
		}
	}
	return u
}

func (s *shared) value(levels []level.Level) tree.Values {
	return func(node int32, l int) placement.Value {
		text, ok := s.there[s.nodes.Name(node)].values[levels[l].Property.Label]
		return placement.Value{Text: text, Missing: !ok}
	}
}

// view is what a scheduler does before a decision.
func (s *shared) view(i int) tree.View {
	r := s.revisions[i]
	topology := s.topologies[r.levels]
	if topology == nil || topology.Stale() {
		topology = tree.NewTopology(s.nodes, s.lists[r.levels], s.value(s.lists[r.levels]))
		s.topologies[r.levels] = topology
	}
	topology.Refresh()
	s.needs[r.needs].Refresh()
	if r.tally == nil || r.tally.Topology() != topology {
		r.tally = tree.NewTally(topology)
		for name := range s.there {
			s.count(i, name)
		}
	}
	r.tally.SetRule(r.rule)
	return tree.View{Topology: topology, Feasibility: s.needs[r.needs], Tally: r.tally}
}

// count has the tally of a revision show a node.
func (s *shared) count(i int, name string) {
	m, r := s.there[name], s.revisions[i]
	of, ofWorkload := s.pods(m, i)
	r.tally.SetPods(m.id, of, ofWorkload)
	r.tally.SetRecord(m.id, r.records[name])
}

func (s *shared) pods(m *machine, i int) (revision, workload int64) {
	for j, pods := range m.pods {
		if s.revisions[j].workload == s.revisions[i].workload {
			workload += int64(pods)
		}
	}
	return int64(m.pods[i]), workload
}

// add counts a pod of a revision on a node, or takes one away.
func (s *shared) add(i int, name string, by int) {
	s.there[name].pods[i] += by
	s.tell(name)
	for j, r := range s.revisions {
		if r.workload == s.revisions[i].workload && r.tally != nil {
			s.count(j, name)
		}
	}
}

func (s *shared) fits(i int, name string) bool {
	m, taken := s.there[name], 0
	for _, pods := range m.pods {
		taken += pods
	}
	return taken < m.room && !m.refuses[s.revisions[i].needs]
}

// decide holds the next pod of a revision to the oracle, and places it.
func (s *shared) decide() {
	i := rapid.IntRange(0, len(s.revisions)-1).Draw(s.t, "revision")
	r, v := s.revisions[i], s.view(i)
	if err := v.Validate(); err != nil {
		s.t.Fatalf("revision %d: %v", i, err)
	}
	levels := s.lists[r.levels]
	var seen []placement.Node
	for _, name := range slices.Sorted(maps.Keys(s.there)) {
		m := s.there[name]
		n := placement.Node{Name: name, Usage: s.usage(m), Unready: m.unready, Record: r.records[name], Ends: m.ends}
		n.Soft = m.soft != "" && !s.needs[r.needs].Tolerates(m.soft)
		n.Tally.Revision, n.Tally.Workload = s.pods(m, i)
		for _, l := range levels {
			text, ok := m.values[l.Property.Label]
			n.Values = append(n.Values, placement.Value{Text: text, Missing: !ok})
		}
		seen = append(seen, n)
	}
	want, wantOK := oracle.Pick(levels, r.rule, seen, s.request, func(name string) bool { return s.fits(i, name) })
	node, ok := v.Next(func(node int32) (bool, int) { return s.fits(i, s.nodes.Name(node)), i })
	if ok != wantOK || ok && s.nodes.Name(node) != want {
		s.t.Fatalf("revision %d: Next is %d, %v; the oracle picks %q, %v\n%s", i, node, ok, want, wantOK, drawing.Tree(v))
	}
	if err := v.Validate(); err != nil {
		s.t.Fatalf("revision %d, decided: %v", i, err)
	}
	if ok {
		s.tied(i, v, node, oracle.BestClass(levels, r.rule, seen, s.request, func(name string) bool { return s.fits(i, name) }))
		s.add(i, want, +1)
	}
}

// tied holds the nodes that are told to tie with the one that is chosen to the oracle's best, all of them where there are no branches.
func (s *shared) tied(i int, v tree.View, chosen int32, best []string) {
	var names []string
	for at, node := range v.Tied(chosen, len(s.there)) {
		name := s.nodes.Name(node)
		if at == 0 && node != chosen {
			s.t.Fatalf("revision %d: of those that tie with %d the first is %s", i, chosen, name)
		}
		if s.fits(i, name) { // of the others the filters have not been asked
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Sort(best)
	for _, name := range names {
		if !slices.Contains(best, name) {
			s.t.Fatalf("revision %d: %q are told to tie, the oracle's best are %q\n%s", i, names, best, drawing.Tree(v))
		}
	}
	if len(s.lists[s.revisions[i].levels]) == 0 && !slices.Equal(names, best) {
		s.t.Fatalf("revision %d: %q are told to tie, the oracle's best are %q\n%s", i, names, best, drawing.Tree(v))
	}
	s.ties = s.ties || len(names) > 1
}

func (s *shared) anyone() string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(s.there))).Draw(s.t, "node")
}

// Whatever happens to a cluster that many workloads share, each pod goes where the oracle would
// put it, which knows of one workload and the present.
func TestManyRevisionsShareATopology(t *testing.T) {
	ties := false
	checkShare(t, 15, func(t *rapid.T) {
		s := drawShared(t)
		defer func() { ties = ties || s.ties }()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			kind := rapid.IntRange(0, 9).Draw(t, "step")
			if len(s.there) == 0 {
				kind = 0
			}
			switch kind {
			case 0:
				s.join()
			case 1:
				s.change(s.anyone())
			case 2:
				name := s.anyone()
				delete(s.there, name)
				s.nodes.Remove(name)
			case 3:
				name, i := s.anyone(), rapid.IntRange(0, len(s.revisions)-1).Draw(t, "of")
				if s.there[name].pods[i] > 0 {
					s.add(i, name, -1)
				}
			case 4:
				name, i := s.anyone(), rapid.IntRange(0, len(s.revisions)-1).Draw(t, "of")
				s.revisions[i].records[name] = drawRecord(t)
				if s.revisions[i].tally != nil {
					s.count(i, name)
				}
			case 5:
				s.revisions[rapid.IntRange(0, len(s.revisions)-1).Draw(t, "of")].rule = drawRule(t)
			default:
				s.decide()
			}
		}
	})
	if !ties {
		t.Error("in no cluster did nodes tie")
	}
}
