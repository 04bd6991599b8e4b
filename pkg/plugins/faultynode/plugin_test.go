// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handle is as much of the framework as the plugin asks for.
type handle struct{ *plugintest.Cluster }

func (h handle) ClientSet() kubernetes.Interface { return h.Client }
func (h handle) ProfileName() string             { return "espalier" }

func args() *config.FaultyNodeArgs {
	return &config.FaultyNodeArgs{
		Threshold: 2, WindowSeconds: 300, HalfOpen: true, ProvenAfterSeconds: 10, OwnErrors: config.OwnErrorsCount,
		Record: config.Record{Enabled: true, Namespace: "kube-system"}, Suspects: config.Suspects{Workloads: 3},
	}
}

// pod is one of workload web.
func pod(name, node string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName("espalier").Node(node).
		Label(clusterview.WorkloadLabel, "web").Label("pod-template-hash", "1")
}

func refused(name, node string) *corev1.Pod {
	p := pod(name, node).Phase(corev1.PodFailed).Obj()
	p.Status.Reason, p.Status.StartTime = "OutOfcpu", &metav1.Time{Time: time.Now()}
	return p
}

// started is the plugin in a cluster of three nodes with these pods. The scheduler's informers are read before any pod is placed.
func started(t *testing.T, pods ...*corev1.Pod) *FaultyNode {
	t.Helper()
	var objects []runtime.Object
	for _, name := range []string{"n1", "n2", "n3"} {
		objects = append(objects, st.MakeNode().Name(name).Obj())
	}
	for _, p := range pods {
		objects = append(objects, p)
	}
	c := plugintest.NewCluster(objects...)
	pl := plugintest.New[*FaultyNode](t, New, args(), handle{c})
	c.Start(t)
	return pl
}

func node(name string) fwk.NodeInfo {
	n := framework.NewNodeInfo()
	n.SetNode(st.MakeNode().Name(name).Obj())
	return n
}

// scoresOf leads a pod through a cycle and returns what the nodes score; nil if the plugin skips.
func scoresOf(t *testing.T, pl *FaultyNode, p *corev1.Pod) (got []int64) {
	t.Helper()
	state, nodes := framework.NewCycleState(), []fwk.NodeInfo{node("n1"), node("n2"), node("n3")}
	if result, status := pl.PreFilter(t.Context(), state, p, nodes); result != nil || !status.IsSuccess() {
		t.Fatalf("PreFilter: %v, %v", result, status)
	}
	switch status := pl.PreScore(t.Context(), state, p, nodes); {
	case status.IsSkip():
		return nil
	case !status.IsSuccess():
		t.Fatalf("PreScore: %v", status)
	}
	for _, n := range nodes {
		score, status := pl.Score(t.Context(), state, p, n)
		if !status.IsSuccess() {
			t.Fatalf("Score: %v", status)
		}
		got = append(got, score)
	}
	return got
}

// The first cycle waits for what can be known.
func TestACycle(t *testing.T) {
	pl := started(t, refused("a", "n1"), refused("b", "n1"), refused("c", "n1"), refused("d", "n2"))
	asking := pod("p", "").Obj()
	want := func(n1, n2, n3 int64) {
		t.Helper()
		got := scoresOf(t, pl, asking)
		if len(got) != 3 || got[0] != n1 || got[1] != n2 || got[2] != n3 {
			t.Errorf("scores are %v, want %d %d %d", got, n1, n2, n3)
		}
	}
	want(19, 90, 100)
	if status := pl.Reserve(t.Context(), nil, asking, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	want(19, 50, 100)
	pl.Unreserve(t.Context(), nil, asking, "n2")
	want(19, 90, 100)
	if _, status := pl.SignPod(t.Context(), asking); status.Code() != fwk.Unschedulable {
		t.Errorf("a pod whose revision has failed is signed: %v", status)
	}
	other := pod("other", "").Label("pod-template-hash", "2").Obj()
	if got := scoresOf(t, pl, other); got != nil {
		t.Errorf("another revision scores %v", got)
	}
	if fragments, status := pl.SignPod(t.Context(), other); len(fragments) > 0 || !status.IsSuccess() {
		t.Errorf("another revision signs %v, %v", fragments, status)
	}
}

func TestNothingIsToldOfPreassignedPods(t *testing.T) {
	pl := started(t)
	state := framework.NewCycleState()
	pinned := pod("p", "").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields).Obj()
	if _, status := pl.PreFilter(t.Context(), state, pinned, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	if faults, err := clusterview.ReadFaults(state); faults != nil || err != nil {
		t.Errorf("got %v, %v", faults, err)
	}
}

func TestScore(t *testing.T) {
	half, seeds := placement.Faults{Threshold: 5, HalfOpen: true}, placement.Faults{Threshold: 5}
	for name, tc := range map[string]struct {
		rule placement.Faults
		r    placement.Record
		want int64
	}{
		"nothing known":           {half, placement.Record{}, 100},
		"only pods that start":    {half, placement.Record{Unproven: 3}, 100},
		"has failed":              {half, placement.Record{Failures: 1, Unforgiven: 1}, 90},
		"has failed, is tried":    {half, placement.Record{Failures: 4, Unforgiven: 4, Unproven: 1}, 50},
		"has failed and recovers": {half, placement.Record{Failures: 4, Unforgiven: 4, Unproven: 1, Proven: true}, 100},
		"the seeds' rule":         {seeds, placement.Record{Failures: 4, Unforgiven: 4, Unproven: 1}, 100},
		"faulty":                  {half, placement.Record{Failures: 5, Unforgiven: 5}, 20},
		"worse":                   {seeds, placement.Record{Failures: 7}, 18},
		"beyond counting":         {half, placement.Record{Failures: 128, Proven: true}, 0},
		"without a threshold":     {placement.Faults{}, placement.Record{}, 100},
	} {
		if got := score(tc.rule, tc.r); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestNew(t *testing.T) {
	h := handle{plugintest.NewCluster()}
	bad := args()
	bad.Threshold = 0
	plugintest.WantArguments(t, Name, New, h)("bad args", bad, "threshold")
	// A simulation has no API server.
	pl, err := New(t.Context(), args(), h)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := pl.(fwk.EnqueueExtensions).EventsToRegister(context.Background()); len(events) > 0 || err != nil {
		t.Errorf("it waits for %v, %v", events, err)
	}
	o := args()
	o.Record.Enabled = false
	if got := options("x", o); got.RecordNamespace != "" || got.Suspects != 3 || got.OwnErrors {
		t.Errorf("options are %+v", got)
	}
}
