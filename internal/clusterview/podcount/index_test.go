// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// web is the workload whose pods the index is asked for, in revision 2.
var web = clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: "Deployment.apps", Name: "web"}, Revision: "2"}

var must = placementtest.Must

// view is an index over NodeInfos that a test changes as the scheduler's cache does.
type view struct {
	index *podcount.Index
	rs    *plugintest.ReplicaSets
	infos []fwk.NodeInfo
	uid   int
}

func newView(nodes ...string) *view {
	v := &view{rs: plugintest.NewReplicaSets(plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment web web-uid")), plugintest.ReplicaSet("web-2", "web-2-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))}
	v.index = podcount.NewIndex(v.rs.Identifier())
	for _, n := range nodes {
		v.join(st.MakeNode().Name(n).Obj())
	}
	return v
}

func (v *view) join(node *corev1.Node) *view {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	v.infos = append(v.infos, info)
	return v
}

func (v *view) leave(name string) {
	v.infos = slices.DeleteFunc(v.infos, func(i fwk.NodeInfo) bool { return i.Node().Name == name })
}

func (v *view) info(name string) *framework.NodeInfo {
	i := slices.IndexFunc(v.infos, func(i fwk.NodeInfo) bool { return i.Node().Name == name })
	return v.infos[i].(*framework.NodeInfo)
}

// put adds pods of a ReplicaSet to a node, "web-1" being of revision 1.
func (v *view) put(node, rs string, pods ...*st.PodWrapper) *view {
	for _, p := range pods {
		v.uid++
		name := fmt.Sprintf("%s-%d", rs, v.uid)
		v.info(node).AddPod(plugintest.Pod(p.Name(name).UID(name).Node(node).Label("pod-template-hash", rs[len(rs)-1:]), "apps/v1 ReplicaSet "+rs+" "+rs+"-uid"))
	}
	return v
}

// remove takes a pod off a node.
func remove(t rapid.TB, info *framework.NodeInfo, p *corev1.Pod) {
	t.Helper()
	must(t, info.RemovePod(logr.Discard(), p))
}

// refresh shows the index the nodes as they are.
func (v *view) refresh() { v.index.Refresh(podcount.Snapshot{Nodes: v.infos}) }

// wantAsked fails the test unless a refresh identifies that many pods.
func (v *view) wantAsked(t *testing.T, step string, want int) {
	t.Helper()
	v.rs.Asked = 0
	v.refresh()
	if v.rs.Asked != want {
		t.Errorf("%s: %d pods were identified, want %d", step, v.rs.Asked, want)
	}
}

// tallies is what the index says of all nodes to web.
func (v *view) tallies() map[string]placement.Tally {
	v.refresh()
	return talliesOf(v.index, web)
}

func talliesOf(index *podcount.Index, of clusterview.Identity) map[string]placement.Tally {
	t := make(map[string]placement.Tally)
	for _, name := range index.Nodes().Names() {
		id, _ := index.Nodes().Find(name)
		revision, workload := index.On(of, id)
		t[name] = placement.Tally{Revision: revision, Workload: workload, All: index.Nodes().Facts(id).Pods}
	}
	return t
}

// watcher notices which nodes change, as whoever remembers what filters say of them does.
type watcher struct{ *tree.Feasibility }

func (v *view) watch() watcher {
	v.refresh()
	w := watcher{tree.NewFeasibility(v.index.Nodes())}
	w.changed(v)
	return w
}

// changed are the nodes that have changed since it was called before.
func (w watcher) changed(v *view) (changed []string) {
	v.refresh()
	w.Refresh()
	for _, name := range v.index.Nodes().Names() {
		id, _ := v.index.Nodes().Find(name)
		if !w.Allowed(id) {
			changed = append(changed, name)
		}
		w.Allow(id)
	}
	return changed
}

func (v *view) has(name string) bool {
	_, known := v.index.Nodes().Find(name)
	return known
}

func TestIndexCounts(t *testing.T) {
	v := newView("n1", "n2", "n3").put("n1", "web-1", st.MakePod(), st.MakePod()).put("n1", "web-2", st.MakePod())
	v.put("n2", "web-2", st.MakePod().Phase(corev1.PodRunning), st.MakePod().Phase(corev1.PodPending),
		st.MakePod().Terminating(), st.MakePod().Phase(corev1.PodSucceeded), st.MakePod().Phase(corev1.PodFailed))
	v.info("n3").AddPod(plugintest.Pod(st.MakePod().Name("bare").UID("bare")))
	v.info("n3").AddPod(plugintest.Pod(st.MakePod().Name("ds").UID("ds"), "apps/v1 DaemonSet ds ds-uid"))
	v.join(st.MakeNode().Name("down").Condition(corev1.NodeReady, corev1.ConditionUnknown, "", "").Obj()).put("down", "web-2", st.MakePod())
	want := map[string]placement.Tally{
		"n1":   {Revision: 1, Workload: 3, All: 3},
		"n2":   {Revision: 2, Workload: 2, All: 2},
		"n3":   {All: 2},
		"down": {Revision: 1, Workload: 1, All: 1},
	}
	plugintest.WantEqual(t, want, v.tallies())
	if d := gocmp.Diff(map[string]int64{"n1": 1, "n2": 2, "down": 1}, revisions(v.index, web)); d != "" {
		t.Error("of the revision: want -, got +:\n" + d)
	}
	for range v.index.Revision(web) {
		break // who has seen enough is not told more
	}
}

// The scheduler's cache adds a pod to its node the moment one is chosen, with the
// node's name in it and no more; it is taken back if the binding fails.
func TestIndexCountsAssumedPods(t *testing.T) {
	v := newView("n1")
	assumed := plugintest.Pod(st.MakePod().Name("p").UID("p").Node("n1").Label("pod-template-hash", "2"), "apps/v1 ReplicaSet web-2 web-2-uid")
	v.info("n1").AddPod(assumed)
	if got := v.tallies()["n1"]; got != (placement.Tally{Revision: 1, Workload: 1, All: 1}) {
		t.Errorf("with the pod assumed: %+v", got)
	}
	remove(t, v.info("n1"), assumed)
	if got := v.tallies()["n1"]; got != (placement.Tally{}) {
		t.Errorf("with the pod forgotten: %+v", got)
	}
}

func TestIndexReportsNodesAsLevelsSeeThem(t *testing.T) {
	v := newView().join(st.MakeNode().Name("n1").Label("zone", "a").Condition(corev1.NodeReady, corev1.ConditionFalse, "", "").Obj())
	v.join(st.MakeNode().Name("n2").Unschedulable(true).Obj()).put("n1", "web-2", st.MakePod()).put("n2", "web-2", st.MakePod())
	v.refresh()
	values := v.index.Values(plugintest.Levels(t, "spread=zone,spread=node.name"))
	for name, want := range map[string]struct {
		zone    placement.Value
		unready bool
	}{
		"n1": {placement.Value{Text: "a"}, true},
		"n2": {placement.Value{Missing: true}, false},
	} {
		id, _ := v.index.Nodes().Find(name)
		if zone, is := values(id, 0), v.index.Nodes().Facts(id).Unready; zone != want.zone || is != want.unready || values(id, 1).Text != name {
			t.Errorf("%s is in zone %+v, unready %t, and called %+v", name, zone, is, values(id, 1))
		}
	}
	plugintest.WantEqual(t, map[string]placement.Tally{"n1": {Revision: 1, Workload: 1, All: 1}, "n2": {Revision: 1, Workload: 1, All: 1}}, v.tallies())
}

// What pods request is counted as schedulers score it, also for those that say nothing.
func TestIndexReportsUsage(t *testing.T) {
	v := newView()
	v.join(st.MakeNode().Name("n1").Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi"}).Obj())
	v.put("n1", "web-2", st.MakePod().Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1", corev1.ResourceMemory: "6Gi"}))
	load := func() uint32 {
		v.refresh()
		id, _ := v.index.Nodes().Find("n1")
		return v.index.Nodes().Facts(id).Usage.Load()
	}
	if got := load(); got != 750_000 {
		t.Errorf("with a pod of 1 of 4 CPUs and 6 of 8 GiB the load is %d", got)
	}
	v.put("n1", "web-2", st.MakePod().Container("image"))
	if got := load(); got <= 750_000 {
		t.Errorf("with a pod more that requests nothing the load is %d", got)
	}
}

func TestIndexKnowsTheLowestPriority(t *testing.T) {
	v := newView("n1", "n2")
	for _, step := range []struct {
		change func()
		want   int32
	}{
		{func() {}, math.MaxInt32},
		{func() { v.put("n1", "web-2", st.MakePod().Priority(7)) }, 7},
		{func() { v.put("n2", "web-2", st.MakePod().Priority(-3), st.MakePod().Terminating().Priority(-5)) }, -5},
		{func() { v.put("n1", "web-2", st.MakePod()) }, -5},
		{func() { v.leave("n2") }, 0},
		// What preemption goes by is the priority of its group.
		{func() { v.put("n1", "web-2", st.MakePod().Priority(9).PodGroupName("group")) }, math.MinInt32},
		{func() { v.leave("n1") }, math.MaxInt32},
	} {
		step.change()
		v.refresh()
		if got := v.index.LowestPriority(); got != step.want {
			t.Errorf("got %d, want %d", got, step.want)
		}
	}
}

func TestIndexIdentifiesOnlyWhatHasChanged(t *testing.T) {
	v := newView("n1", "n2", "n3")
	for _, n := range []string{"n1", "n2", "n3"} {
		v.put(n, "web-2", st.MakePod(), st.MakePod())
	}
	v.wantAsked(t, "at first", 6)
	watcher := v.watch()
	v.wantAsked(t, "with nothing changed", 0)
	if changed := watcher.changed(v); changed != nil {
		t.Errorf("nothing has changed, and %q are told", changed)
	}
	v.put("n2", "web-2", st.MakePod())
	v.wantAsked(t, "with a pod more on n2", 1)
	if changed := watcher.changed(v); !slices.Equal(changed, []string{"n2"}) {
		t.Errorf("since then %q have changed", changed)
	}
	slices.Reverse(v.infos)
	v.wantAsked(t, "in another order", 0)
}

// Who comes seldom is told of all that has happened, who comes often only of the last.
func TestIndexTellsEachWhatHasChanged(t *testing.T) {
	v := newView("n1", "n2")
	early := v.watch()
	v.put("n1", "web-2", st.MakePod())
	late := v.watch()
	v.put("n2", "web-2", st.MakePod())
	if changed := early.changed(v); len(changed) != 2 {
		t.Errorf("since the early version: %q", changed)
	}
	if changed := late.changed(v); len(changed) != 1 {
		t.Errorf("since the late version: %q", changed)
	}
	if changed := late.changed(v); len(changed) != 0 {
		t.Errorf("since now: %q", changed)
	}
}

func TestIndexTellsWhereAWorkloadHasChanged(t *testing.T) {
	v := newView("n1", "n2").put("n1", "web-2", st.MakePod())
	v.refresh()
	if nodes, _, known := v.index.Since(web.Workload, 0); known || len(nodes) != 1 {
		t.Errorf("at first: %d, known %t", nodes, known)
	}
	_, now, _ := v.index.Since(web.Workload, 0)
	v.put("n2", "web-1", st.MakePod())
	v.info("n2").AddPod(plugintest.Pod(st.MakePod().Name("bare").UID("bare")))
	v.refresh()
	nodes, later, known := v.index.Since(web.Workload, now)
	if !known || len(nodes) != 1 || v.index.Nodes().Name(nodes[0]) != "n2" {
		t.Errorf("after a pod on n2: %d, known %t", nodes, known)
	}
	if nodes, _, known := v.index.Since(web.Workload, later); !known || len(nodes) != 0 {
		t.Errorf("since now: %d, known %t", nodes, known)
	}
	v.leave("n1")
	v.leave("n2")
	v.refresh()
	if nodes, _, known := v.index.Since(web.Workload, later); known || len(nodes) != 0 {
		t.Errorf("when it stands nowhere: %d, known %t", nodes, known)
	}
}

// The cache keeps what it knows of a node that was deleted until its last pod is.
func TestIndexPassesOverPodsWithoutANode(t *testing.T) {
	v := newView("n1")
	orphans := framework.NewNodeInfo()
	orphans.AddPod(plugintest.Pod(st.MakePod().Name("p").UID("p").Node("n0")))
	v.infos = append([]fwk.NodeInfo{orphans}, v.infos...)
	if got := v.tallies(); len(got) != 1 {
		t.Errorf("the index has %v", got)
	}
	if got := v.tallies(); len(got) != 1 {
		t.Errorf("the second time, the index has %v", got)
	}
}

func TestIndexAsksAgainWhenTheOwnerIsKnown(t *testing.T) {
	v := newView("n1", "n2").put("n1", "web-3", st.MakePod()).put("n2", "web-2", st.MakePod())
	if got := v.tallies()["n1"]; got != (placement.Tally{All: 1}) {
		t.Fatalf("before its ReplicaSet is known, the pod counts as %+v", got)
	}
	v.rs.Add(plugintest.ReplicaSet("web-3", "web-3-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))
	if got := v.tallies()["n1"]; got != (placement.Tally{Workload: 1, All: 1}) {
		t.Errorf("once its ReplicaSet is known, the pod counts as %+v", got)
	}
	v.rs.Asked = 0
	watcher := v.watch()
	if changed := watcher.changed(v); len(changed) != 0 || v.rs.Asked != 0 {
		t.Errorf("it was asked again: %q, %d pods identified", changed, v.rs.Asked)
	}
}

// Anybody may make a pod that names a ReplicaSet which never comes. It must not be a change of its node in every cycle, for everybody.
func TestRegression_OwnersThatNeverCome(t *testing.T) {
	v := newView("n1", "n2")
	v.put("n1", "web-3", st.MakePod()) // its ReplicaSet is not known
	v.info("n2").AddPod(plugintest.Pod(st.MakePod().Name("p").UID("p").Node("n2"), "apps/v9 ReplicaSet web-2 web-2-uid"))
	watcher := v.watch()
	v.rs.Asked = 0
	for range 20 {
		if changed := watcher.changed(v); changed != nil {
			t.Fatalf("nothing has happened, and %q are told as changed", changed)
		}
	}
	if v.rs.Asked != 0 {
		t.Errorf("%d pods were identified again", v.rs.Asked)
	}
	waits := clusterview.Workload{Namespace: "ns", Kind: "ReplicaSet.apps", Name: "web-3"}
	_, now, _ := v.index.Since(waits, 0)
	v.rs.Add(plugintest.ReplicaSet("other-1", "other-1-uid", plugintest.Owner("apps/v1 Deployment other other-uid")))
	if changed := watcher.changed(v); changed != nil || v.rs.Asked != 1 {
		t.Errorf("with another ReplicaSet %q are told as changed, and %d pods were identified again, want the one that waits for it", changed, v.rs.Asked)
	}
	if nodes, _, known := v.index.Since(waits, now); !known || len(nodes) != 0 {
		t.Errorf("of its workload %d are told as changed, known %t", nodes, known)
	}
}

// A refresh that finds nothing changed is what every pod pays.
func TestIndexRefreshAllocatesNothing(t *testing.T) {
	v := newView("n1", "n2").put("n1", "web-2", st.MakePod())
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
	if n := testing.AllocsPerRun(10, func() { v.index.Refresh(podcount.Snapshot{Nodes: v.infos}) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
