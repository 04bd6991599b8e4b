// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"slices"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// gossip says which nodes have changed, whether they have or not.
type gossip struct {
	nodes   []string
	unknown bool
}

func (g *gossip) Since(position uint64) ([]string, uint64, bool) {
	return slices.Clone(g.nodes), position + 1, position > 0 && !g.unknown
}

// follower is a view whose index has seen its nodes, and now follows.
type follower struct {
	*view
	watcher
}

func newFollower(t *testing.T, nodes ...string) (*follower, *gossip) {
	t.Helper()
	v, g := newView(nodes...), &gossip{}
	v.index.Follow(g)
	return &follower{v, v.watch()}, g
}

// told refreshes the index, and checks which nodes it tells as changed.
func (v *follower) told(t *testing.T, tentative bool, want ...string) {
	t.Helper()
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos, Tentative: tentative})
	v.Refresh()
	var got []string
	for _, name := range v.index.Nodes().Names() {
		id, _ := v.index.Nodes().Find(name)
		if !v.Allowed(id) {
			got = append(got, name)
		}
		v.Allow(id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes told: %v, want %v", got, want)
	}
}

func TestIndexLooksAtWhatChanged(t *testing.T) {
	v, g := newFollower(t, "n1", "n2", "n3")
	for _, n := range []string{"n1", "n2", "n3"} {
		v.put(n, "web-2", st.MakePod())
	}
	g.nodes = []string{"n2", "n2"}
	v.told(t, false, "n2") // the proof that it does not look at others
	g.nodes = nil
	v.told(t, false)
	g.unknown = true
	v.told(t, false, "n1", "n3")
}

func TestIndexLooksAtAllNodesOfAnotherList(t *testing.T) {
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
		if v.has("n3") {
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
func TestIndexLooksAtAllNodesOfTentativeSnapshots(t *testing.T) {
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

// Who learns of ReplicaSets has to look at all pods again.
func TestIndexIdentifiesAnewWhereverPodsStand(t *testing.T) {
	v, _ := newFollower(t, "n1", "n2")
	v.put("n1", "web-3", st.MakePod())
	v.index.Refresh(podcount.Snapshot{Nodes: slices.Clone[[]fwk.NodeInfo](v.infos)})
	v.rs.Add(plugintest.ReplicaSet("web-3", "web-3-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))
	if tally := v.tallies()["n1"]; tally.Workload != 1 || tally.Revision != 0 {
		t.Errorf("on n1: %+v, want a pod of the workload", tally)
	}
}
