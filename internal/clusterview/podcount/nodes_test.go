// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
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

// A ReplicaSet that another Deployment adopts takes its pods along, though nothing happens to the pods or their nodes. What does not change who a pod is
// does not have it looked at again.
func TestRegression_AdoptedReplicaSet(t *testing.T) {
	owner := plugintest.Owner("apps/v1 Deployment old old-uid")
	rs := plugintest.ReplicaSet("web-1", "web-1-uid", owner)
	client := fake.NewClientset(rs)
	factory := informers.NewSharedInformerFactory(client, 0)
	identifier, err := clusterview.WatchingIdentifier(factory.Apps().V1().ReplicaSets())
	must(t, err)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	web := func(name string) *st.PodWrapper { return st.MakePod().Name(name).UID(name).Node("n") }
	info := framework.NewNodeInfo(plugintest.Pod(web("p"), "apps/v1 ReplicaSet web-1 web-1-uid"))
	info.SetNode(st.MakeNode().Name("n").Obj())
	index := podcount.NewIndex(identifier)
	tally := func(deployment string) placement.Tally {
		index.Refresh(podcount.Snapshot{Nodes: []fwk.NodeInfo{info}})
		of := clusterview.Identity{Workload: clusterview.Workload{Namespace: rs.Namespace, Kind: "Deployment.apps", Name: deployment}, Revision: "web-1-uid"}
		return talliesOf(index, of)["n"]
	}
	if got := tally("old"); got.Workload != 1 {
		t.Fatalf("the pod counts %+v for its Deployment", got)
	}
	for _, change := range []func(*metav1.OwnerReference){
		func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(true) },
		func(o *metav1.OwnerReference) { o.APIVersion = "apps/v2" },
		func(o *metav1.OwnerReference) { o.Name, o.UID = "new", "new-uid" }, // which tells that the others were seen
	} {
		change(&owner)
		changed := rs.DeepCopy()
		changed.OwnerReferences = []metav1.OwnerReference{owner}
		if _, err := client.AppsV1().ReplicaSets(rs.Namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); identifier.Adopted.Now() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody noticed that the ReplicaSet was adopted")
		}
	}
	if n := identifier.Adopted.Now(); n != 1 {
		t.Errorf("it got another owner %d times", n)
	}
	if before, after := tally("old"), tally("new"); before.Workload != 0 || after.Workload != 1 {
		t.Errorf("the pod counts %+v for the Deployment it was of, and %+v for the one it is of", before, after)
	}
}

// A ReplicaSet becomes known, or is adopted, while the nodes are counted: the identity returned is the one under which all pods are
// counted, those that were counted before included.
func TestIndexRefreshForAPodWhoseOwnerChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		set, deployment string
		adopted         bool
	}{
		"it becomes known": {"web-3", "web", false},
		"it is adopted":    {"web-1", "new", true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView("n", "m")
			identifier := v.rs.Identifier()
			v.index = podcount.NewIndex(identifier)
			v.put("n", tc.set, st.MakePod())
			v.refresh()
			v.put("m", tc.set, st.MakePod())
			// The pod is asked for first, then the new one on the node: the owner comes between.
			v.rs.Asked, v.rs.Before = 0, func(asked int) {
				if asked == 2 {
					v.rs.Add(plugintest.ReplicaSet(tc.set, tc.set+"-uid", plugintest.Owner("apps/v1 Deployment "+tc.deployment+" uid")))
					if tc.adopted {
						identifier.Adopted.Note("ns")
					}
				}
			}
			waiting := plugintest.Pod(st.MakePod().Name("p").UID("p").Label("pod-template-hash", tc.set[len(tc.set)-1:]), "apps/v1 ReplicaSet "+tc.set+" "+tc.set+"-uid")
			id := v.index.RefreshFor(waiting, podcount.Snapshot{Nodes: v.infos})
			if id.Provisional || id.Workload.Name != tc.deployment {
				t.Errorf("the pod is %+v", id)
			}
			for node, got := range talliesOf(v.index, id) {
				if got.Workload != 1 {
					t.Errorf("on %s %d pods are counted beside it, want 1", node, got.Workload)
				}
			}
		})
	}
}

// In a workload that a label names, only pods of the same owner can be of an older
// revision. What another owner has brought is there to stay.
func TestIndexCountsOtherOwnersOfANamedWorkload(t *testing.T) {
	v := newView("n")
	v.rs.Add(plugintest.ReplicaSet("api-7", "api-7-uid", plugintest.Owner("apps/v1 Deployment api api-uid")))
	labelled := func() *st.PodWrapper { return st.MakePod().Label(clusterview.WorkloadLabel, "shop") }
	v.put("n", "web-1", labelled()).put("n", "web-2", labelled(), labelled()).put("n", "api-7", labelled(), labelled(), labelled(), labelled())
	v.put("n", "web-2", st.MakePod()) // not of the workload
	v.info("n").AddPod(plugintest.Pod(labelled().Name("bare").UID("bare").Node("n")))
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos})

	for name, tc := range map[string]struct {
		of   clusterview.Identity
		want int64
	}{
		"web, which is being rolled out": {v.rs.Identifier().Identify(plugintest.Pod(labelled().Name("x").Label("pod-template-hash", "2"), "apps/v1 ReplicaSet web-2 web-2-uid")), 2 + 4 + 1},
		"api, which is not":              {v.rs.Identifier().Identify(plugintest.Pod(labelled().Name("x").Label("pod-template-hash", "7"), "apps/v1 ReplicaSet api-7 api-7-uid")), 1 + 2 + 4 + 1},
		"a pod that nobody owns":         {v.rs.Identifier().Identify(plugintest.Pod(labelled().Name("x"))), 1 + 2 + 4 + 1},
	} {
		got := talliesOf(v.index, tc.of)["n"]
		if want := (placement.Tally{Revision: tc.want, Workload: 8, All: 9}); got != want {
			t.Errorf("%s: the tally is %+v, want %+v", name, got, want)
		}
	}
}

// A tenant who changes the owner of a ReplicaSet by the second has only pods of his own namespace looked at again.
func TestOwnersOfOneNamespaceChange(t *testing.T) {
	v := newView("n", "m")
	identifier := v.rs.Identifier()
	v.index = podcount.NewIndex(identifier)
	v.put("n", "web-1", st.MakePod(), st.MakePod()).put("m", "web-2", st.MakePod(), st.MakePod().Label(clusterview.WorkloadLabel, "shop"))
	v.put("m", "not-known", st.MakePod())
	v.wantAsked(t, "at first", 5)
	identifier.Adopted.Note("elsewhere")
	identifier.Added.Note("elsewhere")
	v.wantAsked(t, "a ReplicaSet of another namespace came, and got another owner", 0)
	identifier.Added.Note("ns")
	v.wantAsked(t, "a ReplicaSet came", 1)
	identifier.Adopted.Note("ns")
	v.wantAsked(t, "a ReplicaSet got another owner", 5)
}

// In the cycle of a pod group the scheduler puts pods on the nodes of its snapshot, and takes them away, without a new generation.
func TestIndexSeesPodsAssumedInTheSnapshotAlone(t *testing.T) {
	v := newView()
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{st.MakeNode().Name("n1").Obj()})
	step := func(name string, want int64) {
		t.Helper()
		nodes, err := snapshot.NodeInfos().List()
		must(t, err)
		v.infos = nodes
		if got := v.tallies()["n1"].Revision; got != want {
			t.Errorf("%s: %d pods count, want %d", name, got, want)
		}
	}
	assume := func(name, revision string) *corev1.Pod {
		t.Helper()
		p := plugintest.Pod(st.MakePod().Name(name).UID(name).Node("n1").Label("pod-template-hash", revision), "apps/v1 ReplicaSet web-"+revision+" web-"+revision+"-uid")
		info, err := framework.NewPodInfo(p)
		if err == nil {
			err = snapshot.AssumePod(info)
		}
		must(t, err)
		return p
	}
	forget := func(p *corev1.Pod) {
		t.Helper()
		must(t, snapshot.ForgetPod(logr.Discard(), p))
	}
	step("at first", 0)
	old := assume("a", "1")
	step("with one of the old revision", 0)
	forget(old)
	p := assume("b", "2")
	step("with another in its place", 1)
	forget(p)
	step("when it is forgotten", 0)
}
