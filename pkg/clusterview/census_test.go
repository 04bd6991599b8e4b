// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// web is the workload whose pods the census is asked for, in revision 2.
var web = clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: "Deployment.apps", Name: "web"}, Revision: "2"}

// view is a census over NodeInfos that a test changes as the scheduler's cache does.
type view struct {
	census *clusterview.Census
	rs     *replicaSets
	infos  []fwk.NodeInfo
	uid    int
}

func newView(nodes ...string) *view {
	v := &view{rs: newReplicaSets(replicaSet("web-1", "web-1-uid", owner("apps/v1 Deployment web web-uid")), replicaSet("web-2", "web-2-uid", owner("apps/v1 Deployment web web-uid")))}
	v.census = clusterview.NewCensus(v.rs.identifier())
	for _, n := range nodes {
		v.join(st.MakeNode().Name(n).Obj())
	}
	return v
}

func (v *view) join(node *corev1.Node) {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	v.infos = append(v.infos, info)
}

func (v *view) leave(name string) {
	v.infos = slices.DeleteFunc(v.infos, func(i fwk.NodeInfo) bool { return i.Node().Name == name })
}

func (v *view) info(name string) *framework.NodeInfo {
	i := slices.IndexFunc(v.infos, func(i fwk.NodeInfo) bool { return i.Node().Name == name })
	return v.infos[i].(*framework.NodeInfo)
}

// put adds pods of a ReplicaSet to a node, "web-1" being of revision 1.
func (v *view) put(node, rs string, pods ...*st.PodWrapper) {
	for _, p := range pods {
		v.uid++
		name := fmt.Sprintf("%s-%d", rs, v.uid)
		v.info(node).AddPod(pod(p.Name(name).UID(name).Node(node).Label("pod-template-hash", rs[len(rs)-1:]), "apps/v1 ReplicaSet "+rs+" "+rs+"-uid"))
	}
}

// changed refreshes the census and returns what has changed for web since a version.
func (v *view) changed(since uint64, levels ...level.Level) (map[string]placement.Node, bool) {
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
	nodes := make(map[string]placement.Node)
	gone := v.census.Each(since, web, levels, func(n placement.Node) { nodes[n.Name] = n })
	return nodes, gone
}

// tallies is what the census says of all nodes.
func (v *view) tallies() map[string]placement.Tally {
	nodes, _ := v.changed(0)
	t := make(map[string]placement.Tally)
	for name, n := range nodes {
		t[name] = n.Tally
	}
	return t
}

func TestCensusCounts(t *testing.T) {
	v := newView("n1", "n2", "n3")
	v.put("n1", "web-1", st.MakePod(), st.MakePod())
	v.put("n1", "web-2", st.MakePod())
	v.put("n2", "web-2", st.MakePod().Phase(corev1.PodRunning), st.MakePod().Phase(corev1.PodPending),
		st.MakePod().Terminating(), st.MakePod().Phase(corev1.PodSucceeded), st.MakePod().Phase(corev1.PodFailed))
	v.info("n3").AddPod(pod(st.MakePod().Name("bare").UID("bare")))
	v.info("n3").AddPod(pod(st.MakePod().Name("ds").UID("ds"), "apps/v1 DaemonSet ds ds-uid"))
	want := map[string]placement.Tally{
		"n1": {Revision: 1, Workload: 3, All: 3},
		"n2": {Revision: 2, Workload: 2, All: 2},
		"n3": {All: 2},
	}
	if d := gocmp.Diff(want, v.tallies()); d != "" {
		t.Error("want -, got +:\n" + d)
	}
}

// The scheduler's cache adds a pod to its node the moment one is chosen, with the
// node's name in it and no more; it is taken back if the binding fails.
func TestCensusCountsAssumedPods(t *testing.T) {
	v := newView("n1")
	assumed := pod(st.MakePod().Name("p").UID("p").Node("n1").Label("pod-template-hash", "2"), "apps/v1 ReplicaSet web-2 web-2-uid")
	v.info("n1").AddPod(assumed)
	if got := v.tallies()["n1"]; got != (placement.Tally{Revision: 1, Workload: 1, All: 1}) {
		t.Errorf("with the pod assumed: %+v", got)
	}
	if err := v.info("n1").RemovePod(fakeLogger(t), assumed); err != nil {
		t.Fatal(err)
	}
	if got := v.tallies()["n1"]; got != (placement.Tally{}) {
		t.Errorf("with the pod forgotten: %+v", got)
	}
}

func TestCensusReportsNodesAsLevelsSeeThem(t *testing.T) {
	v := newView()
	v.join(st.MakeNode().Name("n1").Label("zone", "a").Condition(corev1.NodeReady, corev1.ConditionFalse, "", "").Obj())
	v.join(st.MakeNode().Name("n2").Unschedulable(true).Obj())
	v.put("n1", "web-2", st.MakePod())
	v.put("n2", "web-2", st.MakePod())
	nodes, _ := v.changed(0, parse(t, "spread=zone")...)
	one := placement.Tally{Revision: 1, Workload: 1, All: 1}
	want := map[string]placement.Node{
		"n1": {Name: "n1", Values: []placement.Value{{Text: "a"}}, Tally: one, Unready: true},
		"n2": {Name: "n2", Values: []placement.Value{{Missing: true}}, Tally: one},
	}
	if d := gocmp.Diff(want, nodes); d != "" {
		t.Error("want -, got +:\n" + d)
	}
}

func TestCensusIdentifiesOnlyWhatHasChanged(t *testing.T) {
	v := newView("n1", "n2", "n3")
	for _, n := range []string{"n1", "n2", "n3"} {
		v.put(n, "web-2", st.MakePod(), st.MakePod())
	}
	asked := func(step string, want int) {
		t.Helper()
		v.rs.asked = 0
		v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
		if v.rs.asked != want {
			t.Errorf("%s: %d pods were identified, want %d", step, v.rs.asked, want)
		}
	}
	asked("at first", 6)
	before := v.census.Version()
	asked("with nothing changed", 0)
	if v.census.Version() != before {
		t.Error("the version moved though nothing changed")
	}
	v.put("n2", "web-2", st.MakePod())
	asked("with a pod more on n2", 1)
	nodes, gone := v.changed(before)
	if got := slices.Sorted(maps.Keys(nodes)); gone || !slices.Equal(got, []string{"n2"}) {
		t.Errorf("since then %q have changed, departures: %t", got, gone)
	}
	slices.Reverse(v.infos)
	asked("in another order", 0)
}

func TestCensusVersions(t *testing.T) {
	v := newView("n1", "n2")
	nodes, gone := v.changed(0)
	if len(nodes) != 2 || gone {
		t.Fatalf("at first: %v, departures: %t", nodes, gone)
	}
	early := v.census.Version()
	v.put("n1", "web-2", st.MakePod())
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
	late := v.census.Version()
	v.put("n2", "web-2", st.MakePod())
	// Who comes seldom is told of both, who comes often only of the last.
	if nodes, _ := v.changed(early); len(nodes) != 2 {
		t.Errorf("since the early version: %v", nodes)
	}
	if nodes, _ := v.changed(late); len(nodes) != 1 {
		t.Errorf("since the late version: %v", nodes)
	}
	if nodes, gone := v.changed(v.census.Version()); len(nodes) != 0 || gone {
		t.Errorf("since now: %v, departures: %t", nodes, gone)
	}
}

func TestCensusFollowsNodesThatGoAndReturn(t *testing.T) {
	v := newView("n1", "n2", "n3")
	v.put("n1", "web-2", st.MakePod())
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
	before := v.census.Version()

	v.leave("n1")
	nodes, gone := v.changed(before)
	if len(nodes) != 0 || !gone || v.census.Has("n1") || !v.census.Has("n2") || !v.census.Has("n3") {
		t.Fatalf("n1 left: changed %v, departures: %t, has n1 %t", nodes, gone, v.census.Has("n1"))
	}
	if _, again := v.changed(v.census.Version()); again {
		t.Error("the departure is told again")
	}

	v.join(st.MakeNode().Name("n1").Label("zone", "b").Obj())
	nodes, gone = v.changed(before, parse(t, "spread=zone")...)
	want := map[string]placement.Node{"n1": {Name: "n1", Values: []placement.Value{{Text: "b"}}}}
	if d := gocmp.Diff(want, nodes); d != "" || !gone || !v.census.Has("n1") {
		t.Errorf("n1 is back, departures since before: %t, want -, got +:\n%s", gone, d)
	}
}

// One leaves and another comes between two snapshots: as many as before.
func TestCensusSeesANodeReplaced(t *testing.T) {
	v := newView("n1", "n2")
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
	before := v.census.Version()
	v.leave("n2")
	v.join(st.MakeNode().Name("n3").Obj())
	nodes, gone := v.changed(before)
	if _, ok := nodes["n3"]; len(nodes) != 1 || !ok || !gone || v.census.Has("n2") || !v.census.Has("n3") {
		t.Errorf("changed %v, departures: %t", nodes, gone)
	}
}

// The cache keeps what it knows of a node that was deleted until its last pod is.
func TestCensusPassesOverPodsWithoutANode(t *testing.T) {
	v := newView("n1")
	orphans := framework.NewNodeInfo()
	orphans.AddPod(pod(st.MakePod().Name("p").UID("p").Node("n0")))
	v.infos = append([]fwk.NodeInfo{orphans}, v.infos...)
	if got := v.tallies(); len(got) != 1 {
		t.Errorf("the census has %v", got)
	}
	if got := v.tallies(); len(got) != 1 {
		t.Errorf("the second time, the census has %v", got)
	}
}

func TestCensusAsksAgainUntilTheOwnerIsKnown(t *testing.T) {
	v := newView("n1", "n2")
	v.put("n1", "web-3", st.MakePod())
	v.put("n2", "web-2", st.MakePod())
	if got := v.tallies()["n1"]; got != (placement.Tally{All: 1}) {
		t.Fatalf("before its ReplicaSet is known, the pod counts as %+v", got)
	}
	before := v.census.Version()
	if nodes, _ := v.changed(before); len(nodes) != 1 {
		t.Errorf("what may have changed is %v", nodes)
	}
	v.rs.add(replicaSet("web-3", "web-3-uid", owner("apps/v1 Deployment web web-uid")))
	if got := v.tallies()["n1"]; got != (placement.Tally{Workload: 1, All: 1}) {
		t.Errorf("once its ReplicaSet is known, the pod counts as %+v", got)
	}
	v.rs.asked = 0
	before = v.census.Version()
	if nodes, _ := v.changed(before); len(nodes) != 0 || v.rs.asked != 0 {
		t.Errorf("it was asked again: %v, %d pods identified", nodes, v.rs.asked)
	}
}

func TestCensusDoubt(t *testing.T) {
	v := newView("n1", "n2")
	v.put("n1", "web-2", st.MakePod())
	v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
	before := v.census.Version()
	v.census.Doubt("n1")
	v.census.Doubt("unknown")
	nodes, gone := v.changed(before)
	if len(nodes) != 1 || gone || nodes["n1"].Tally.Revision != 1 {
		t.Errorf("a node in doubt is told again as %v, departures: %t", nodes, gone)
	}
	if nodes, _ := v.changed(v.census.Version()); len(nodes) != 0 {
		t.Errorf("the doubt stays: %v", nodes)
	}
}

func TestCensusKnowsWhetherHostsAreNodes(t *testing.T) {
	host := func(node, name string) *corev1.Node {
		return st.MakeNode().Name(node).Label(corev1.LabelHostname, name).Obj()
	}
	v := newView()
	v.join(host("a", "a"))
	v.join(host("b", "b"))
	for _, step := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"each has its name", func() {}, true},
		{"one shares that of another", func() { v.info("b").SetNode(host("b", "a")) }, false},
		{"it still does", func() { v.info("b").SetNode(host("b", "a")) }, false},
		{"and gets its own back", func() { v.info("b").SetNode(host("b", "b")) }, true},
		{"one comes without a label", func() { v.join(st.MakeNode().Name("c").Obj()) }, false},
		{"and goes", func() { v.leave("c") }, true},
	} {
		step.change()
		v.census.Refresh(clusterview.Snapshot{Nodes: v.infos})
		if got := v.census.HostsAreNodes(); got != step.want {
			t.Errorf("%s: hosts are nodes is %t", step.name, got)
		}
	}
}
