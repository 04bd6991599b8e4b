// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"maps"
	"slices"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// gossip says which nodes have changed, whether they have or not.
type gossip struct {
	nodes   []string
	unknown bool
}

func (g *gossip) Since(position uint64) ([]string, uint64, bool) {
	return slices.Clone(g.nodes), position + 1, position > 0 && !g.unknown
}

// newFollower is a view whose census has seen its nodes, and now follows.
func newFollower(t *testing.T, nodes ...string) (*view, *gossip) {
	t.Helper()
	v, g := newView(nodes...), &gossip{}
	v.census.Follow(g)
	v.told(t, false, nodes...)
	return v, g
}

// told refreshes the census, and checks which nodes it tells as changed.
func (v *view) told(t *testing.T, tentative bool, want ...string) {
	t.Helper()
	before := v.census.Version()
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos, Tentative: tentative})
	got := make(map[string]bool)
	v.census.Each(before, web, nil, func(n placement.Node) { got[n.Name] = true })
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("nodes told: %v, want %v", names, want)
	}
}

func TestCensusLooksAtWhatChanged(t *testing.T) {
	v, g := newFollower(t, "n1", "n2", "n3")
	for _, n := range []string{"n1", "n2", "n3"} {
		v.put(n, "web-2", st.MakePod())
	}
	g.nodes = []string{"n2", "n2"}
	v.told(t, false, "n2") // the proof that it does not look at others
	g.nodes = nil
	v.told(t, false)
	v.census.Doubt("n2")
	v.told(t, false, "n2")
	v.told(t, false)
	g.unknown = true
	v.told(t, false, "n1", "n3")
}

func TestCensusLooksAtAllNodesOfAnotherList(t *testing.T) {
	t.Run("order", func(t *testing.T) {
		v, _ := newFollower(t, "n1", "n2")
		v.put("n1", "web-2", st.MakePod())
		v.infos = slices.Clone(v.infos)
		v.told(t, false, "n1")
	})
	t.Run("length", func(t *testing.T) {
		v, _ := newFollower(t, "n1", "n2", "n3")
		v.put("n1", "web-2", st.MakePod())
		v.infos = v.infos[:2]
		v.told(t, false, "n1")
		if v.census.Has("n3") {
			t.Error("the node that is not in the snapshot is known")
		}
	})
	t.Run("unknown", func(t *testing.T) {
		v, g := newFollower(t, "n1", "n2")
		v.put("n1", "web-2", st.MakePod())
		g.nodes = []string{"somebody"} // it has pods, and no object yet
		v.told(t, false, "n1")
	})
	t.Run("renamed", func(t *testing.T) {
		v, g := newFollower(t, "n1", "n2")
		v.info("n2").SetNode(st.MakeNode().Name("n3").Obj())
		g.nodes = []string{"n2"}
		v.told(t, false, "n3")
	})
}

// A group's pods are put on a snapshot without a word, and taken off it again.
func TestCensusLooksAtAllNodesOfTentativeSnapshots(t *testing.T) {
	v, _ := newFollower(t, "n1", "n2")
	v.put("n1", "web-2", st.MakePod())
	v.told(t, true, "n1")
	tentative := v.info("n1").Pods[0].GetPod()
	if err := v.info("n1").RemovePod(fakeLogger(t), tentative); err != nil {
		t.Fatal(err)
	}
	v.told(t, false, "n1")
	v.put("n2", "web-2", st.MakePod())
	v.told(t, false)
}

// What is unsure at every look is looked at once a refresh, however often it is named.
func TestCensusDoubtsDoNotMultiply(t *testing.T) {
	v, g := newFollower(t, "n1")
	v.put("n1", "web-3", st.MakePod()) // its ReplicaSet is not known
	g.nodes = []string{"n1"}
	for range 20 {
		before := v.census.Version()
		v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
		if looks := v.census.Version() - before; looks != 1 {
			t.Fatalf("the node was counted %d times in a refresh, want once", looks)
		}
	}
}

// Who learns of ReplicaSets has to look at all pods again.
func TestCensusIdentifiesAnewWhereverPodsStand(t *testing.T) {
	v, _ := newFollower(t, "n1", "n2")
	v.put("n1", "web-3", st.MakePod())
	v.census.Refresh(clusterview.Snapshot{Nodes: slices.Clone[[]fwk.NodeInfo](v.infos)})
	v.rs.add(replicaSet("web-3", "web-3-uid", owner("apps/v1 Deployment web web-uid")))
	if tally := v.tallies()["n1"]; tally.Workload != 1 {
		t.Errorf("on n1: %+v, want a pod of the workload", tally)
	}
}
