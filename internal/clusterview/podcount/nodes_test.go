// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"slices"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestIndexFollowsNodesThatGoAndReturn(t *testing.T) {
	v := newView("n1", "n2", "n3").put("n1", "web-2", st.MakePod())
	v.refresh()
	before := v.index.Nodes().Structure()
	v.leave("n1")
	v.refresh()
	if v.has("n1") || !v.has("n2") || !v.has("n3") || v.index.Counts(web.Workload) || v.index.Nodes().Structure() == before {
		t.Fatalf("n1 left: has n1 %t, its pod counts %t", v.has("n1"), v.index.Counts(web.Workload))
	}
	before = v.index.Nodes().Structure()
	v.refresh()
	if v.index.Nodes().Structure() != before {
		t.Error("the departure is told again")
	}
	v.join(st.MakeNode().Name("n1").Label("zone", "b").Obj())
	v.refresh()
	v.index.Watch(plugintest.Levels(t, "spread=zone"))
	id, known := v.index.Nodes().Find("n1")
	if got := v.index.Values(plugintest.Levels(t, "spread=zone"))(id, 0); !known || got.Text != "b" {
		t.Errorf("n1 is back: %t, in zone %+v", known, got)
	}
	v.info("n1").SetNode(st.MakeNode().Name("n1").Label("zone", "c").Obj())
	before = v.index.Nodes().Structure()
	v.refresh()
	if v.index.Nodes().Structure() == before {
		t.Error("n1 has another zone, and the structure is as it was")
	}
}

func TestIndexHeedsLabelsThatLevelsName(t *testing.T) {
	v := newView("n1")
	v.refresh()
	v.index.Watch(plugintest.Levels(t, "spread=zone"))
	v.index.Watch(plugintest.Levels(t, "spread=zone,spread=rack"))
	changes := func(node *st.NodeWrapper) bool {
		before := v.index.Nodes().Structure()
		v.info("n1").SetNode(node.Obj())
		v.refresh()
		return v.index.Nodes().Structure() != before
	}
	if changes(st.MakeNode().Name("n1").Label("seen-at", "noon")) {
		t.Error("a label that no level names changes the structure")
	}
	if !changes(st.MakeNode().Name("n1").Label("zone", "")) || !changes(st.MakeNode().Name("n1").Label("zone", "a")) || !changes(st.MakeNode().Name("n1")) {
		t.Error("a node is in another zone, and the structure is as it was")
	}
	v.index.Unwatch(plugintest.Levels(t, "spread=zone,spread=rack"))
	if !changes(st.MakeNode().Name("n1").Label("zone", "b")) || changes(st.MakeNode().Name("n1").Label("zone", "b").Label("rack", "r")) {
		t.Error("of two lists of levels one is watched no more, and the labels that matter are not those of the other")
	}
	// However many labels there have been, others may be written by the minute.
	for i := range 2000 {
		levels := plugintest.Levels(t, fmt.Sprint("spread=label-", i))
		v.index.Watch(levels)
		v.index.Unwatch(levels)
	}
	v.index.Unwatch(plugintest.Levels(t, "spread=zone"))
	if changes(st.MakeNode().Name("n1").Label("seen-at", "one")) {
		t.Error("a label that no level names changes the structure")
	}
}

// One leaves and another comes between two snapshots: as many as before.
func TestIndexSeesANodeReplaced(t *testing.T) {
	v := newView("n1", "n2")
	watcher := v.watch()
	v.leave("n2")
	v.join(st.MakeNode().Name("n3").Obj())
	if changed := watcher.changed(v); !slices.Equal(changed, []string{"n3"}) || v.has("n2") || !v.has("n3") {
		t.Errorf("changed %q, has n2 %t, has n3 %t", changed, v.has("n2"), v.has("n3"))
	}
}

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

// Where the list of nodes is another one, or who has changed is not known by name, all are looked at.
func TestIndexLooksAtAllNodesOfAnotherList(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*follower, *gossip)
		told   string
	}{
		"another order": {func(v *follower, _ *gossip) { v.infos = slices.Clone(v.infos) }, "n1"},
		"fewer":         {func(v *follower, _ *gossip) { v.infos = v.infos[:2] }, "n1"},
		"unknown":       {func(_ *follower, g *gossip) { g.nodes = []string{"somebody"} }, "n1"}, // it has pods, and no object yet
		"renamed": {func(v *follower, g *gossip) {
			v.info("n2").SetNode(st.MakeNode().Name("n4").Obj())
			g.nodes = []string{"n2"}
		}, "n4"},
	} {
		t.Run(name, func(t *testing.T) {
			v, g := newFollower(t, "n1", "n2", "n3")
			if tc.told == "n1" {
				v.put("n1", "web-2", st.MakePod())
			}
			tc.change(v, g)
			v.told(t, false, tc.told)
			if v.has("n3") != (len(v.infos) == 3) {
				t.Errorf("the node that is left out of the snapshot is known: %t", v.has("n3"))
			}
		})
	}
}

// A group's pods are put on a snapshot without a word, and taken off it again.
func TestIndexLooksAtAllNodesOfTentativeSnapshots(t *testing.T) {
	v, _ := newFollower(t, "n1", "n2")
	v.put("n1", "web-2", st.MakePod())
	v.told(t, true, "n1")
	remove(t, v.info("n1"), v.info("n1").Pods[0].GetPod())
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
