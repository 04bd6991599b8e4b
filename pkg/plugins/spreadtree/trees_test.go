// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// zones is a rig with the nodes a1 and a2 in zone a, b1 in zone b.
func zones(t *testing.T) *rig {
	t.Helper()
	r := newRig(t.Context(), t, args()).zoned("a1", "a2", "b1")
	return r
}

func TestOneTallyForABatch(t *testing.T) {
	r := zones(t)
	pod := func(i int) *corev1.Pod { return webPod(fmt.Sprint("p", i), "spread=zone").Obj() }
	r.place(pod(0))
	if r.kept(pod(0)) != nil {
		t.Error("the first pod of a batch makes a tally for it alone")
	}
	r.place(pod(1))
	first := r.kept(pod(0))
	if first == nil {
		t.Fatal("the batch has no tally")
	}
	topology, entries := first.Topology(), first.Tally
	for i := range 5 {
		r.place(pod(i + 2))
	}
	if r.kept(pod(9)) != first || len(r.pl.trees.all()) != 1 || first.Tally != entries || first.Topology() != topology {
		t.Errorf("there are %d tallies after seven pods of one batch, want its own, made once", len(r.pl.trees.all()))
	}
	if err := r.shown(pod(0)).Validate(); err != nil {
		t.Error(err)
	}
	r.place(webPod("other levels", "pack=zone").Obj())
	r.place(webPod("other revision", "spread=zone").Label("pod-template-hash", "3").Obj())
	if n := len(r.pl.trees.all()); n != 3 || r.kept(pod(0)) != first {
		t.Errorf("there are %d tallies for three batches, want their own", n)
	}
	if n := r.pl.trees.topologies.Len(); n != 2 {
		t.Errorf("there are %d topologies for two lists of levels", n)
	}
}

// What one workload costs in memory is for its pods to say, and not for their labels.
func TestTalliesOfAWorkloadAreBounded(t *testing.T) {
	r := zones(t)
	r.runs("a1", "0", 1)
	pod := func(revision int) *corev1.Pod {
		return webPod(fmt.Sprint("p", revision), "spread=zone").Label("pod-template-hash", fmt.Sprint(revision)).Obj()
	}
	for i := range maxRevisions + 5 {
		r.place(pod(i))
	}
	if n := len(r.pl.trees.all()); n != maxRevisions {
		t.Errorf("there are %d tallies, want %d", n, maxRevisions)
	}
	if r.kept(pod(0)) != nil {
		t.Fatal("the oldest tally is still there")
	}
	// It is made again with what it had counted.
	if got := r.rank(pod(0), framework.NewCycleState()); got["b1"] != 100 {
		t.Errorf("the scores are %v; the first pod is in zone a", got)
	}
}

// A topology is shared, and the lists of levels that are in use at a time are bounded.
func TestTopologiesAreBounded(t *testing.T) {
	r := zones(t)
	for i := range maxTopologies + 5 {
		r.place(ofWorkload(fmt.Sprint("w", i), fmt.Sprint("p", i), fmt.Sprintf("spread=zone,spread=rack-%d", i)).Obj())
	}
	if n := r.pl.trees.topologies.Len(); n != maxTopologies {
		t.Errorf("there are %d topologies, want %d", n, maxTopologies)
	}
	// Pods that count have their workloads keep tallies, and these their topologies.
	for i := range maxTopologies + 5 {
		r.place(ofWorkload(fmt.Sprint("w", i), fmt.Sprint("q", i), fmt.Sprintf("spread=zone,spread=rack-%d", i)).Obj())
	}
	tallies, nodes := r.pl.trees.all(), 0
	for _, is := range tallies {
		if len(is.Topology().Nodes()) > 0 {
			nodes++
		}
	}
	if len(tallies) != maxTopologies+5 || nodes != maxTopologies {
		t.Errorf("%d tallies have topologies with nodes %d times, want %d and %d", len(tallies), nodes, maxTopologies+5, maxTopologies)
	}
	r.pl.misplaced()
	for _, is := range tallies {
		if got := r.rank(ofWorkload(is.id.Workload.Name, "r", level.Format(is.levels.List)).Obj(), framework.NewCycleState()); len(got) == 0 {
			t.Errorf("%v has no scores", is.id)
		}
	}
}

// slow is a lister of ReplicaSets that learns of web-1 when asked has come to 1.
type slow struct {
	appslisters.ReplicaSetLister
	asked *int
}

type slowNamespace struct {
	appslisters.ReplicaSetNamespaceLister
	asked *int
}

func (l slow) ReplicaSets(string) appslisters.ReplicaSetNamespaceLister {
	return slowNamespace{asked: l.asked}
}

func (l slowNamespace) Get(name string) (*appsv1.ReplicaSet, error) {
	if *l.asked++; *l.asked <= 1 {
		return nil, apierrors.NewNotFound(appsv1.Resource("replicasets"), name)
	}
	rs := &appsv1.ReplicaSet{}
	rs.UID = "web-1-uid"
	rs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Controller: new(true)}}
	return rs, nil
}

func TestRegression_ReplicaSetBecomesKnownInTheMiddle(t *testing.T) {
	r := zones(t)
	asked := 1
	r.pl.identifier = clusterview.NewIdentifier(slow{asked: &asked})
	r.pl.trees = newTrees(r.pl.identifier, r.pl.trees.sets, false)
	pod := func(name, node string) *corev1.Pod {
		p := st.MakePod().Namespace("ns").Name(name).UID(name).Node(node).Annotation(clusterview.PlacementAnnotation, "spread=zone").Obj()
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "web-1-uid", Controller: new(true)}}
		return p
	}
	r.must(r.cache.AddPod(r.logger, pod("p", "a1")))
	for first := range 4 { // whichever look-up of the cycle is the last in vain
		asked = 1 - first
		r.pl.trees = newTrees(r.pl.identifier, r.pl.trees.sets, false)
		if scores := r.rank(pod("q", ""), framework.NewCycleState()); scores["b1"] != fwk.MaxScore || scores["a2"] == fwk.MaxScore {
			t.Errorf("after %d look-ups in vain the scores are %v", first, scores)
		}
	}
}

// The list of constraints has no order, and nodes that come may change how keys nest. Levels that somebody has put in an order keep it.
func TestConstraintsAreOrderedByNesting(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a", "rack=1")
	r.join("a2", "zone=a", "rack=2")
	r.join("b1", "zone=b", "rack=3")
	inOrder := func(source clusterview.Source) string {
		r.pl.trees.index.Refresh(podcount.Snapshot{Nodes: r.feasible()})
		levels := clusterview.Levels{List: plugintest.Levels(t, "spread=rack,spread=zone"), Source: source}
		return level.Format(r.pl.trees.topology(levels).Levels())
	}
	if got, want := inOrder(clusterview.FromConstraints), "spread=zone,spread=rack"; got != want {
		t.Errorf("constraints are ordered %q, want %q", got, want)
	}
	for _, source := range []clusterview.Source{clusterview.FromAnnotation, clusterview.FromPolicy, clusterview.FromDefaults} {
		if got, want := inOrder(source), "spread=rack,spread=zone"; got != want {
			t.Errorf("levels of source %d are ordered %q, want %q", source, got, want)
		}
	}
	r.join("b2", "zone=b", "rack=1") // a rack in two zones
	if got, want := inOrder(clusterview.FromConstraints), "spread=rack,spread=zone"; got != want {
		t.Errorf("with a rack in two zones constraints are ordered %q, want %q", got, want)
	}
}

// A label matters as long as a topology goes by it. A tenant with many lists of levels has other nodes' labels matter to nobody.
func TestLabelsOfEvictedTopologiesDoNotMatter(t *testing.T) {
	r := newRig(t.Context(), t, args())
	node := r.join("n1", "zone=a")
	refresh := func() { r.pl.trees.index.Refresh(podcount.Snapshot{Nodes: r.feasible()}) }
	refresh()
	const lists = 1100
	for i := range lists {
		levels := clusterview.Levels{List: plugintest.Levels(t, fmt.Sprint("spread=label-", i)), Source: clusterview.FromAnnotation}
		r.pl.trees.topology(levels)
	}
	changes := func(labels ...string) bool {
		before, changed := r.pl.trees.index.Nodes().Structure(), labelled("n1", labels...).Obj()
		r.cache.UpdateNode(r.logger, node, changed)
		node = changed
		refresh()
		return r.pl.trees.index.Nodes().Structure() != before
	}
	if changes("zone=a", "label-0=b") {
		t.Error("a label by which no topology goes any more changes the structure")
	}
	if !changes("zone=a", fmt.Sprintf("label-%d=b", lists-1)) {
		t.Error("a label by which a topology goes does not change the structure")
	}
}

// ofService is a pod of an owner, whose soft constraint over zones selects the pods of all owners.
func ofService(owner, pod int) *corev1.Pod {
	name := fmt.Sprintf("app%d-%d", owner, pod)
	p := st.MakePod().Namespace("ns").Name(name).UID(name).Label("svc", "x").Label("controller-revision-hash", "1").
		SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("svc", "x").Obj(), nil, nil, nil, nil)
	return plugintest.Pod(p, fmt.Sprintf("apps/v1 StatefulSet app%d app%d-uid", owner, owner))
}

// Many owners under one selector are one workload. They share one tally, however many they are and in whatever turn
// their pods come: one for each would be made anew for nearly every pod.
func TestOwnersUnderOneSelector(t *testing.T) {
	r := newRig(t.Context(), t, args()).zoned("a1", "b1", "c1")
	f := &filters{rig: r}
	const owners = 3 * maxRevisions
	onNode, built := make(map[string]int), 0
	for pod := range 2 {
		for owner := range owners {
			p := ofService(owner, pod)
			node, _ := f.hint(p, true)
			f.assume(p, node)
			onNode[node]++
			if kept := r.kept(p); kept != nil && kept.rebuilt {
				built++
			}
		}
	}
	for _, name := range []string{"a1", "b1", "c1"} {
		if onNode[name] != 2*owners/3 {
			t.Errorf("%d pods are on %s, want a third of %d", onNode[name], name, 2*owners)
		}
	}
	service := clusterview.Workload{Namespace: "ns", Kind: clusterview.KindSelector, Name: "svc=x"}
	if kept := r.pl.trees.tallies[service].Len(); kept != 1 || built > 1 {
		t.Errorf("the service has %d tallies, and one was made %d times, want one, once", kept, built)
	}
}

// An owner with an older revision sees counts of its own: what is on its way out is no part of them.
func TestRevisionsUnderOneSelector(t *testing.T) {
	r := newRig(t.Context(), t, args()).zoned("a1", "b1")
	old := ofService(0, 0)
	old.Labels["controller-revision-hash"], old.Spec.NodeName = "0", "a1"
	r.must(r.cache.AddPod(r.logger, old))
	beside := ofService(1, 0)
	beside.Spec.NodeName = "b1"
	r.must(r.cache.AddPod(r.logger, beside))
	if got := r.counted(ofService(0, 1), "a1"); got != [2]int64{0, 1} {
		t.Errorf("where its older revision is, the owner counts %v", got)
	}
	if got := r.counted(ofService(1, 1), "a1"); got != [2]int64{1, 1} {
		t.Errorf("there, another owner counts %v", got)
	}
	if got := r.counted(ofService(0, 1), "b1"); got != [2]int64{1, 1} {
		t.Errorf("where the other owner is, it counts %v", got)
	}
}

// What has failed of one workload says nothing of another under the same selector, in whichever turn their pods come.
func TestFaultsUnderOneSelector(t *testing.T) {
	of := func(workload, name string) *corev1.Pod {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label("svc", "x").Label(clusterview.WorkloadLabel, workload).
			SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("svc", "x").Obj(), nil, nil, nil, nil).Obj()
	}
	r := newRig(t.Context(), t, args()).zoned("a1", "b1")
	for _, workload := range []string{"bad", "good"} {
		there := of(workload, "first-of-"+workload)
		there.Spec.NodeName = "b1"
		r.must(r.cache.AddPod(r.logger, there))
	}
	faults := newLedger(placement.Faults{Threshold: 2})
	f := &filters{rig: r}
	proposed := func(workload string) string {
		state := framework.NewCycleState()
		clusterview.WriteFaults(state, faults)
		f.feasible()
		node, _, err := f.pl.Hint(f.ctx, state, of(workload, "next-of-"+workload), true, f.fits)
		f.must(err)
		return node
	}
	for turn, want := range []string{"a1", "b1", "b1"} {
		if turn == 1 {
			faults.write(at(r.pl.identifier.Identify(of("bad", "p")), "a1"), placement.Record{Failures: 2})
		}
		if good := proposed("good"); good != "a1" {
			t.Errorf("turn %d: a pod of the workload without failures goes to %s", turn, good)
		}
		if bad := proposed("bad"); bad != want {
			t.Errorf("turn %d: a pod of the workload that fails on a1 goes to %s, want %s", turn, bad, want)
		}
	}
}
