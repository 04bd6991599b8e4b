// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
)

func TestFilterByWhatCounts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		there *st.PodWrapper
		full  bool
	}{
		{"of the same revision", web("x", "2", ""), true},
		{"the same, under other limits", web("x", "2", "rack=9"), true},
		{"starting", web("x", "2", "").Phase(corev1.PodPending), true},
		{"of another revision", web("x", "1", ""), false},
		{"of another workload", web("x", "2", "").Label(clusterview.WorkloadLabel, "db"), false},
		{"of another namespace", web("x", "2", "").Namespace("other"), false},
		{"terminating", web("x", "2", "").Terminating(), false},
		{"that has succeeded", web("x", "2", "").Phase(corev1.PodSucceeded), false},
		{"that has failed", web("x", "2", "").Phase(corev1.PodFailed), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t.Context(), t).join("n1", "n2")
			r.runs("n1", tc.there)
			want := []string{"n1", "n2"}
			if tc.full {
				want = want[1:]
			}
			r.expect("one per node", web("p", "2", "node.name=1"), want...)
		})
	}
}

func TestFilterCountsNodesInAnyState(t *testing.T) {
	r := newRig(t.Context(), t).join("ready rack=c", "zz rack=d")
	r.cache.AddNode(r.logger, node("cordoned rack=a").Unschedulable(true).Obj())
	r.cache.AddNode(r.logger, node("down rack=b").Condition(corev1.NodeReady, corev1.ConditionUnknown, "", "").Obj())
	r.join("a2 rack=a", "b2 rack=b")
	r.runs("cordoned", web("x", "2", ""))
	r.runs("down", web("y", "2", ""))
	r.expect("one per rack", web("p", "2", "rack=1"), "ready", "zz")
}

// The full message of a pod that fits nowhere: nodes are counted by reason, each once.
func TestMessage(t *testing.T) {
	r := newRig(t.Context(), t).join("a1 rack=a", "a2 rack=a", "b1 rack=b", "n")
	r.runs("a1", web("x", "2", ""))
	r.runs("b1", web("y", "2", ""))
	pod := web("p", "2", "rack=1").Obj()
	fits, diagnosis := r.filter(pod)
	err := &framework.FitError{Pod: pod, NumAllNodes: 4, Diagnosis: diagnosis}
	const want = "0/4 nodes are available: 1 node(s) didn't have a property that the pod's domain limits name, " +
		"3 node(s) were in a domain with as many of the workload's pods as its domain limits allow."
	if len(fits) != 0 || err.Error() != want {
		t.Errorf("%q fit; got  %s\nwant %s", fits, err, want)
	}
	for name, code := range map[string]fwk.Code{"a1": fwk.Unschedulable, "a2": fwk.Unschedulable, "n": fwk.UnschedulableAndUnresolvable} {
		if s := diagnosis.NodeToStatus.Get(name); s.Code() != code {
			t.Errorf("node %s gets %v, want code %v", name, s, code)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	r := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 1}).join("a1 rack=a", "b1 rack=b", "n")
	r.runs("a1", web("x", "2", ""))
	r.expect("without limits of its own", web("p", "2", ""), "b1")
	r.expect("with limits of its own", web("p", "2", "node.name=2"), "a1", "b1", "n")
	r.expect("pinned to a node", web("p", "2", "").NodeAffinityIn("metadata.name", []string{"a1"}, st.NodeSelectorTypeMatchFields), "b1")
	r.expect("of a DaemonSet", web("p", "2", "").OwnerReference("ds", daemonSet), "a1", "b1", "n")
	r.expect("of a DaemonSet, with limits of its own", web("p", "2", "rack=1").OwnerReference("ds", daemonSet), "b1")
}

func TestPreFilter(t *testing.T) {
	r := newRig(t.Context(), t).join("n1")
	pod := web("p", "2", "").Obj()
	if result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), pod, r.nodes()); result != nil || !s.IsSkip() {
		t.Errorf("a pod without limits: %v, %v", result, s)
	}
	if result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), web("p", "2", "rack=1").Obj(), r.nodes()); result != nil || !s.IsSuccess() {
		t.Errorf("a pod with limits: %v, %v", result, s)
	}
	for text, part := range map[string]string{"rack=two": `limit 1 "rack=two": invalid number of pods "two"`, "": `no limits in ""`} {
		pod.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: text}
		result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), pod, r.nodes())
		if result != nil || s.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(s.Message(), part) ||
			!strings.Contains(s.Message(), clusterview.DomainLimitsAnnotation) {
			t.Errorf("%q: %v, %v", text, result, s)
		}
	}
}

// A profile that enables other points without PreFilter is told so, and no pod is placed.
func TestWithoutPreFilter(t *testing.T) {
	r := newRig(t.Context(), t).join("n1")
	n, pod, state := r.nodes()[0], web("p", "2", "rack=1").Obj(), framework.NewCycleState()
	info, err := framework.NewPodInfo(web("q", "2", "").Obj())
	r.must(err)
	for point, s := range map[string]*fwk.Status{
		"Filter":    r.pl.Filter(r.ctx, state, pod, n),
		"AddPod":    r.pl.AddPod(r.ctx, state, pod, info, n),
		"RemovePod": r.pl.RemovePod(r.ctx, state, pod, info, n),
	} {
		if s.Code() != fwk.Error || !strings.Contains(s.Message(), "PreFilter") {
			t.Errorf("%s: %v", point, s)
		}
	}
	state.Write("PreFilter"+domainlimits.Name, strangeData{})
	if s := r.pl.Filter(r.ctx, state, pod, n); s.Code() != fwk.Error || !strings.Contains(s.Message(), "strangeData") {
		t.Errorf("with something else in its place: %v", s)
	}
}

type strangeData struct{}

func (s strangeData) Clone() fwk.StateData { return s }

// An annotation comes before a policy, a policy before the profile. One that cannot be read refuses the pods that need it.
func TestLimitsOfAPolicy(t *testing.T) {
	r := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 9})
	policy := func(name, app string, limits ...placementv1alpha1.DomainLimit) *clusterview.Policy {
		in := &placementv1alpha1.PlacementPolicy{}
		in.Namespace, in.Name = "ns", name
		in.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
		in.Spec.DomainLimits = limits
		return clusterview.ReadPolicy(in)
	}
	r.pl.Under(policies.Fixed(
		policy("one", "web", placementv1alpha1.DomainLimit{TopologyKey: "rack", MaxPods: 2}),
		policy("silent", "api"),
		policy("bad", "db", placementv1alpha1.DomainLimit{TopologyKey: "node.id", MaxPods: 2}),
	))
	for name, tc := range map[string]struct {
		pod  *st.PodWrapper
		want string
	}{
		"by the policy":           {st.MakePod().Namespace("ns").Label("app", "web"), "rack=2"},
		"by its annotation":       {st.MakePod().Namespace("ns").Label("app", "web").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
		"the policy says nothing": {st.MakePod().Namespace("ns").Label("app", "api"), "rack=9"},
		"of another namespace":    {st.MakePod().Namespace("other").Label("app", "web"), "rack=9"},
		"an unreadable policy":    {st.MakePod().Namespace("ns").Label("app", "db"), ""},
		"but the pod has its own": {st.MakePod().Namespace("ns").Label("app", "db").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
	} {
		got, err := r.pl.Limits(tc.pod.Obj())
		if (err != nil) != (tc.want == "") || limit.Format(got) != tc.want {
			t.Errorf("%s: the limits are %q, %v; want %q", name, limit.Format(got), err, tc.want)
		}
	}
}

// Cases of the systems that had such limits before, under the numbers that docs/parity.md gives them.

// TestVectors places pods in turn, which are given by their revisions.
func TestVectors(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  []string
		there  map[string]string // revisions by node
		limits string
		pods   []string
		want   []string // "" for pods that fit nowhere
	}{
		// A pod of the next revision finds room beside it, where SwarmKit refuses it until the old one is gone.
		"2.9 M1, one node, limit 1": {nodes: []string{"n1"}, limits: "node.name=1", pods: []string{"0", "0", "1"}, want: []string{"n1", "", "n1"}},
		"2.16, limit 1 on three nodes, five pods": {
			nodes: []string{"n1", "n2", "n3"}, limits: "node.name=1", pods: []string{"0", "0", "0", "0", "0"}, want: []string{"n1", "n2", "n3", "", ""},
		},
		// SwarmKit refuses both pods of the new revision, and an update that starts new pods first waits for ever (moby#40797).
		"2.16, limit 1 with the old revision on both of two nodes": {
			nodes: []string{"n1", "n2"}, there: map[string]string{"n1": "1", "n2": "1"}, limits: "node.name=1", pods: []string{"2", "2", "2"}, want: []string{"n1", "n2", ""},
		},
		"TV16, servers": {nodes: cell, limits: "server=1", pods: []string{"0", "0", "0", "0", "0"}, want: []string{"s1", "s2", "s3", "s4", ""}},
		"TV16, racks":   {nodes: cell, limits: "server=1,rack=1", pods: []string{"0", "0", "0"}, want: []string{"s1", "s3", ""}},
		"TV16, a cell":  {nodes: cell, limits: "server=1,rack=2,cell=3", pods: []string{"0", "0", "0", "0"}, want: []string{"s1", "s2", "s3", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t.Context(), t)
			r.join(tc.nodes...)
			for node, revision := range tc.there {
				r.runs(node, web("there-"+node, revision, tc.limits))
			}
			var on []string
			for i, revision := range tc.pods {
				on = append(on, r.place(web(fmt.Sprint("p", i), revision, tc.limits)))
			}
			if !slices.Equal(on, tc.want) {
				t.Errorf("pods are placed on %q, want %q", on, tc.want)
			}
		})
	}
}

// cell is two racks of two servers.
var cell = []string{"s1 server=1 rack=1 cell=c", "s2 server=2 rack=1 cell=c", "s3 server=3 rack=2 cell=c", "s4 server=4 rack=2 cell=c"}

func TestVector_2_9_M2(t *testing.T) {
	r := newRig(t.Context(), t)
	one := func(name string) string { return r.place(web(name, "0", "node.name=1")) }
	if a, b := one("t1"), one("t2"); a != "" || b != "" {
		t.Errorf("without nodes, pods are placed on %q and %q", a, b)
	}
	r.join("n1", "n2")
	if a, b := one("t1"), one("t2"); a == "" || b == "" || a == b {
		t.Errorf("on two nodes, pods are placed on %q and %q", a, b)
	}
	if got := one("t3"); got != "" {
		t.Errorf("a third is placed on %q", got)
	}
	r.join("n3")
	if got := one("t3"); got != "n3" {
		t.Errorf("with a third node, it is placed on %q", got)
	}
	// The same pods under a limit of 3: six more in all, and no seventh.
	var on []string
	for _, name := range []string{"t4", "t5", "t6", "t7", "t8", "t9", "t10"} {
		on = append(on, r.place(web(name, "0", "node.name=3")))
	}
	slices.Sort(on)
	if want := []string{"", "n1", "n1", "n2", "n2", "n3", "n3"}; !slices.Equal(on, want) {
		t.Errorf("under a limit of 3, pods are placed on %q, want %q", on, want)
	}
}

// Racks with 2, 2 and 1 pods, at most 2 each; one that stops gives its place back.
func TestVector_NV13(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n0 rack=0", "n1 rack=1", "n2 rack=2", "unlabelled")
	r.runs("n0", web("a", "0", ""))
	r.runs("n0", web("b", "0", ""))
	r.runs("n1", web("c", "0", ""))
	stops := r.runs("n1", web("d", "0", ""))
	r.runs("n2", web("e", "0", ""))
	r.expect("at first", web("p", "0", "rack=2"), "n2")
	stopped := stops.DeepCopy()
	stopped.DeletionTimestamp = new(metav1.Now())
	r.must(r.cache.UpdatePod(r.logger, stops, stopped))
	r.expect("when one in rack 1 has been told to stop", web("p", "0", "rack=2"), "n1", "n2")
}

// In the cycle of a pod group, pods that are assumed in the snapshot alone take room.
func TestPodsOfAGroupTakeRoomFromEachOther(t *testing.T) {
	r := newRig(t.Context(), t).join("n1 rack=a", "n2 rack=a", "n3 rack=b")
	nodes := r.nodes()
	info, err := framework.NewPodInfo(web("a", "0", "rack=1").Node("n1").Obj())
	r.must(err)
	r.must(r.snapshot.AssumePod(info))
	next, state := web("b", "0", "rack=1").Obj(), framework.NewCycleState()
	if _, s := r.pl.PreFilter(r.ctx, state, next, nodes); !s.IsSuccess() {
		t.Fatal(s)
	}
	for i, want := range []bool{false, false, true} {
		if s := r.pl.Filter(r.ctx, state, next, nodes[i]); s.IsSuccess() != want {
			t.Errorf("node %s: %v", nodes[i].Node().Name, s)
		}
	}
}

func expectHint(t *testing.T, want fwk.QueueingHint, event fwk.ClusterEvent, pod *corev1.Pod, before, after any) {
	t.Helper()
	plugintest.WantHint(t, newRig(t.Context(), t).pl, pod, plugintest.Change{Event: event, Before: before, After: after}, want)
}

func TestHintAfterPodLeft(t *testing.T) {
	there := func() *st.PodWrapper { return web("x", "2", "").Node("n1") }
	db := func() *st.PodWrapper { return there().Label(clusterview.WorkloadLabel, "db") }
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper // no after: it is deleted
		want          fwk.QueueingHint
	}{
		{"deleted", there(), nil, fwk.Queue},
		{"deleted, having been terminating", there().Terminating(), nil, fwk.Queue},
		{"terminating", there(), there().Terminating(), fwk.Queue},
		{"fails", there(), there().Phase(corev1.PodFailed), fwk.Queue},
		{"succeeds", there(), there().Phase(corev1.PodSucceeded), fwk.Queue},
		{"relabelled into another workload", there(), db(), fwk.Queue},
		{"relabelled into another revision", there(), there().Label("pod-template-hash", "3"), fwk.Queue},
		{"relabelled otherwise", there(), there().Label("x", "y"), fwk.QueueSkip},
		{"starts to run", there(), there().Phase(corev1.PodRunning), fwk.QueueSkip},
		{"changes while it goes", there().Terminating(), there().Terminating().Label("x", "y"), fwk.QueueSkip},
		{"joins the workload", db(), there(), fwk.QueueSkip},
		{"of another workload, deleted", db(), nil, fwk.QueueSkip},
		{"of another namespace, deleted", there().Namespace("other"), nil, fwk.QueueSkip},
		{"of another revision, deleted", there().Label("pod-template-hash", "1"), nil, fwk.QueueSkip},
		{"of another revision, terminating", there().Label("pod-template-hash", "1"), there().Label("pod-template-hash", "1").Terminating(), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := web("p", "2", "node.name=1").Obj()
			if tc.after == nil {
				expectHint(t, tc.want, framework.EventAssignedPodDelete, pod, tc.before.Obj(), nil)
				expectHint(t, tc.want, framework.EventAssignedPodDelete, pod, cache.DeletedFinalStateUnknown{Obj: tc.before.Obj()}, nil)
				return
			}
			for _, e := range framework.PodSchedulingPropertiesChange(tc.after.Obj(), tc.before.Obj(), false) {
				expectHint(t, tc.want, e, pod, tc.before.Obj(), tc.after.Obj())
			}
		})
	}
}

// The ReplicaSet of a pod may be unknown when one of its kind goes: whose it is cannot
// be told, and so it might be the one that is waited for.
func TestHintAfterPodOfAnUnknownOwnerLeft(t *testing.T) {
	owned := func(name, revision string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label("pod-template-hash", revision).
			OwnerReference("web-"+revision, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	}
	waiting := web("p", "2", "node.name=1").Obj()
	expectHint(t, fwk.Queue, framework.EventAssignedPodDelete, waiting, owned("x", "2").Node("n1").Obj(), nil)
	expectHint(t, fwk.QueueSkip, framework.EventAssignedPodDelete, waiting, owned("x", "3").Node("n1").Obj(), nil)
	expectHint(t, fwk.QueueSkip, framework.EventAssignedPodDelete, waiting, owned("x", "2").Namespace("other").Node("n1").Obj(), nil)
}

func TestHintAfterPodUpdate(t *testing.T) {
	pod := func(limits string) *st.PodWrapper { return web("p", "2", limits) }
	hints := plugintest.NewHints(t, newRig(t.Context(), t).pl)
	hints.AfterPodUpdate("limits mended", pod("rack=two"), pod("rack=2"), fwk.Queue)
	hints.AfterPodUpdate("limits taken away", pod("rack=1"), pod(""), fwk.Queue)
	hints.AfterPodUpdate("limits changed", pod("rack=1"), pod("rack=2"), fwk.Queue)
	hints.AfterPodUpdate("limits changed, still bad", pod("rack=two"), pod("rack=three"), fwk.QueueSkip)
	hints.AfterPodUpdate("given another workload", pod("rack=1"), pod("rack=1").Label(clusterview.WorkloadLabel, "db"), fwk.Queue)
	hints.AfterPodUpdate("given another workload, limits bad", pod("rack"), pod("rack").Label(clusterview.WorkloadLabel, "db"), fwk.QueueSkip)
	hints.AfterPodUpdate("relabelled, so that another policy may govern it", pod(""), pod("").Label("app", "other"), fwk.Queue)
	hints.AfterPodUpdate("something else changed", pod("rack=1"), pod("rack=1").Annotation("other", "x").Toleration("t"), fwk.QueueSkip)
	hints.AfterPodUpdate("nothing changed", pod("rack=1"), pod("rack=1"), fwk.QueueSkip)
	hints.AfterPodUpdate("empty limits taken away", pod("").Annotation(clusterview.DomainLimitsAnnotation, ""), pod(""), fwk.Queue)
}

func TestHintAfterNodeChange(t *testing.T) {
	hints := plugintest.NewHints(t, newRig(t.Context(), t).pl)
	hints.AfterNodeChange("a node comes", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, nil, node("n").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node of some rack comes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node of no rack comes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, nil, node("n zone=a").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node with one of two properties comes", web("p", "2", "rack=1,zone=1"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node is given a rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n").Obj(), node("n rack=a").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node moves to another rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=b").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node leaves its rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node is relabelled otherwise", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=a zone=b").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node is relabelled, of which only the name matters", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=b").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node of a rack goes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), nil, fwk.Queue)
	hints.AfterNodeChange("a node of no rack goes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n").Obj(), nil, fwk.QueueSkip)
	hints.AfterNodeChange("a node goes, and its domain with it", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), nil, fwk.QueueSkip)
	hints.AfterNodeChange("no node mends limits", web("p", "2", "rack=two"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.QueueSkip)
}
