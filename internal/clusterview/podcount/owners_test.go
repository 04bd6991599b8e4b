// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// A ReplicaSet that another Deployment adopts takes its pods along, though nothing
// happens to the pods or their nodes.
func TestRegression_AdoptedReplicaSet(t *testing.T) {
	rs := plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment old old-uid"))
	client := fake.NewClientset(rs)
	factory := informers.NewSharedInformerFactory(client, 0)
	replicaSets := factory.Apps().V1().ReplicaSets()
	identifier := clusterview.NewIdentifier(replicaSets.Lister())
	if err := identifier.Watch(replicaSets.Informer()); err != nil {
		t.Fatal(err)
	}
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

	adopted := rs.DeepCopy()
	adopted.OwnerReferences = []metav1.OwnerReference{plugintest.Owner("apps/v1 Deployment new new-uid")}
	before := identifier.Adopted.Now()
	if _, err := client.AppsV1().ReplicaSets(rs.Namespace).Update(t.Context(), adopted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); identifier.Adopted.Now() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody noticed that the ReplicaSet was adopted")
		}
	}
	if before, after := tally("old"), tally("new"); before.Workload != 0 || after.Workload != 1 {
		t.Errorf("the pod counts %+v for the Deployment it was of, and %+v for the one it is of", before, after)
	}
}

// A ReplicaSet is adopted while the nodes are counted: the identity returned is the one under which all pods are counted, those that
// were counted before included.
func TestIndexRefreshForAPodWhoseOwnerIsAdopted(t *testing.T) {
	v := newView("n", "m")
	identifier := v.rs.Identifier()
	v.index = podcount.NewIndex(identifier)
	v.put("n", "web-1", st.MakePod())
	v.refresh()
	v.put("m", "web-1", st.MakePod())
	// The pod is asked for first, then the new one on the node: the other owner comes between.
	v.rs.Asked, v.rs.Before = 0, func(asked int) {
		if asked == 2 {
			v.rs.Add(plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment new new-uid")))
			identifier.Adopted.Note("ns")
		}
	}
	waiting := plugintest.Pod(st.MakePod().Name("p").UID("p").Label("pod-template-hash", "1"), "apps/v1 ReplicaSet web-1 web-1-uid")
	id := v.index.RefreshFor(waiting, podcount.Snapshot{Nodes: v.infos})
	if id.Workload.Name != "new" {
		t.Errorf("the pod is %+v", id)
	}
	for node, got := range talliesOf(v.index, id) {
		if got.Workload != 1 {
			t.Errorf("on %s %d pods are counted beside it, want 1", node, got.Workload)
		}
	}
}

// In a workload that a label names, only pods of the same owner can be of an older
// revision. What another owner has brought is there to stay.
func TestIndexCountsOtherOwnersOfANamedWorkload(t *testing.T) {
	v := newView("n")
	v.rs.Add(plugintest.ReplicaSet("api-7", "api-7-uid", plugintest.Owner("apps/v1 Deployment api api-uid")))
	labelled := func() *st.PodWrapper { return st.MakePod().Label(clusterview.WorkloadLabel, "shop") }
	v.put("n", "web-1", labelled())
	v.put("n", "web-2", labelled(), labelled())
	v.put("n", "api-7", labelled(), labelled(), labelled(), labelled())
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
	v.put("n", "web-1", st.MakePod(), st.MakePod())
	v.put("m", "web-2", st.MakePod(), st.MakePod().Label(clusterview.WorkloadLabel, "shop"))
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

// What does not change who a pod is does not have it looked at again.
func TestOwnerThatStaysTheSame(t *testing.T) {
	owner := plugintest.Owner("apps/v1 Deployment web web-uid")
	rs := plugintest.ReplicaSet("web-1", "web-1-uid", owner)
	client := fake.NewClientset(rs)
	factory := informers.NewSharedInformerFactory(client, 0)
	replicaSets := factory.Apps().V1().ReplicaSets()
	identifier, err := clusterview.WatchingIdentifier(replicaSets)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for _, change := range []func(*metav1.OwnerReference){
		func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(true) },
		func(o *metav1.OwnerReference) { o.APIVersion = "apps/v2" },
		func(o *metav1.OwnerReference) { o.Name = "other" },
	} {
		change(&owner)
		changed := rs.DeepCopy()
		changed.OwnerReferences = []metav1.OwnerReference{owner}
		if _, err := client.AppsV1().ReplicaSets(rs.Namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The last one tells that the others were seen.
	for deadline := time.Now().Add(20 * time.Second); identifier.Adopted.Now() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody noticed that the ReplicaSet got another owner")
		}
	}
	if n := identifier.Adopted.Now(); n != 1 {
		t.Errorf("it got another owner %d times", n)
	}
}
