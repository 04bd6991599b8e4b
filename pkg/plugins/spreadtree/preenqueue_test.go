// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
)

func TestPreEnqueueIsOffByDefault(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, p := range []*st.PodWrapper{webPod("p", ""), webPod("q", "sprd=zone")} {
		if s := r.pl.PreEnqueue(r.ctx, p.Obj()); !s.IsSuccess() {
			t.Errorf("%s: %v", p.Obj().Name, s)
		}
	}
	if n := len(r.pl.batches.waiting); n != 0 {
		t.Errorf("%d batches wait", n)
	}
}

func TestPreEnqueueHoldsBack(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pod   *st.PodWrapper
		waits bool
	}{
		{"a pod", webPod("p", ""), true},
		{"one with scheduling gates", webPod("p", "").Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated), true},
		{"one of a DaemonSet", webPod("p", "").OwnerReference("ds", daemonSet), false},
		{"one pinned to a node", webPod("p", "").NodeAffinityIn("metadata.name", []string{"a1"}, st.NodeSelectorTypeMatchFields), false},
		{"one that no node fitted", webPod("p", "").Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable), false},
		{"one whose binding failed", webPod("p", "").Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulerError), false},
		{"a member of a group", webPod("p", "").PodGroupName("g"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t.Context(), t, args())
			r.pl.batches = newDebouncer(window, maxDelay, newClock(), nil)
			s := r.pl.PreEnqueue(r.ctx, tc.pod.Obj())
			if s.IsSuccess() == tc.waits {
				t.Errorf("got %v", s)
			}
			if tc.waits && (s.Code() != fwk.Unschedulable || s.Message() != reasonBatch) {
				t.Errorf("it waits with %v", s)
			}
		})
	}
}

// TestBatchesInTheSchedulingQueue holds the plugin against the real queue, which
// calls PreEnqueue under its own lock, also from within Activate.
func TestBatchesInTheSchedulingQueue(t *testing.T) {
	r := newRig(t.Context(), t, args())
	c := newClock()
	oldestFirst := func(a, b fwk.QueuedEntityInfo) bool { return a.GetTimestamp().Before(b.GetTimestamp()) }
	queue := internalqueue.NewTestQueue(r.ctx, oldestFirst, internalqueue.WithClock(c),
		internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{"": {Name: r.pl}}))
	defer queue.Close()
	r.pl.batches = newDebouncer(window, maxDelay, c, func(pods map[string]*corev1.Pod) { queue.Activate(r.logger, pods) })
	active := func() (names []string) {
		for _, p := range queue.PodsInActiveQ() {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := active(); !slices.Equal(got, want) {
			t.Errorf("%s: in the queue are %q, want %q", when, got, want)
		}
	}
	other := webPod("other", "").Label("pod-template-hash", "3").Obj()
	deleted := webPod("deleted", "").Obj()
	queue.Add(r.ctx, webPod("p1", "").Obj())
	queue.Add(r.ctx, deleted)
	queue.Add(r.ctx, webPod("ds", "").OwnerReference("ds", daemonSet).Obj())
	expect("at first", "ds")
	c.advance(30 * time.Millisecond)
	queue.Add(r.ctx, webPod("p2", "").Obj())
	queue.Add(r.ctx, other)
	queue.Delete(r.logger, deleted)
	c.advance(49 * time.Millisecond)
	expect("before the window of the last arrival ends", "ds")
	c.advance(time.Millisecond)
	expect("when it has ended", "ds", "other", "p1", "p2")
	if len(r.pl.batches.waiting) != 0 || len(r.pl.batches.released) != 0 {
		t.Errorf("left behind: %d batches, %d released pods", len(r.pl.batches.waiting), len(r.pl.batches.released))
	}
}

// The arguments reach the debouncer, and the handle its end.
func TestBatchArguments(t *testing.T) {
	a := args()
	a.Batch = config.Batch{}
	a.Batch.Window.Duration, a.Batch.MaxDelay.Duration = window, maxDelay
	r := newRig(t.Context(), t, a)
	if b := r.pl.batches; !b.enabled() || b.window != window || b.maxDelay != maxDelay {
		t.Errorf("the debouncer has %v and %v", b.window, b.maxDelay)
	}
	r.pl.batches.activate(map[string]*corev1.Pod{"p": webPod("p", "").Obj()})
	if !slices.Equal(r.activated, []string{"p"}) {
		t.Errorf("activated are %q", r.activated)
	}
}
