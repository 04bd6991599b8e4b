// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// extended is a profile of which nothing is known but who wants to know of what.
type extended struct {
	framework.Framework
	plugins []fwk.EnqueueExtensions
}

func (f *extended) EnqueueExtensions() []fwk.EnqueueExtensions { return f.plugins }

// curious is a plugin that wants to know of an event.
type curious struct {
	name  string
	event fwk.ClusterEvent
}

func (c curious) Name() string { return c.name }

func (c curious) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: c.event}}, nil
}

var bound = fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add | fwk.Delete}

func TestNarrow(t *testing.T) {
	everything := fwk.ClusterEvent{Resource: fwk.WildCard, ActionType: fwk.All}
	deletions := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	spread := func(defaults ...corev1.TopologySpreadConstraint) []config.KubeSchedulerProfile {
		return []config.KubeSchedulerProfile{{PluginConfig: []config.PluginConfig{{
			Name: names.PodTopologySpread, Args: &config.PodTopologySpreadArgs{DefaultConstraints: defaults},
		}}}}
	}
	for _, tc := range []struct {
		name       string
		plugins    []fwk.EnqueueExtensions
		configured []config.KubeSchedulerProfile
		want       bool
	}{
		{name: "stock", plugins: []fwk.EnqueueExtensions{
			curious{names.InterPodAffinity, bound}, curious{names.PodTopologySpread, bound}, curious{names.GangScheduling, bound}, curious{names.NodeResourcesFit, deletions},
		}, configured: spread(), want: true},
		{name: "another plugin", plugins: []fwk.EnqueueExtensions{curious{"Another", bound}}},
		{name: "all pods", plugins: []fwk.EnqueueExtensions{curious{"Another", fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}}}},
		{name: "an extender", plugins: []fwk.EnqueueExtensions{curious{framework.ExtenderName, everything}}},
		{name: "default constraints", configured: spread(corev1.TopologySpreadConstraint{TopologyKey: "zone"})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := &internalqueue.PriorityQueue{}
			got := narrow(t.Context(), queue, profile.Map{"one": &extended{plugins: tc.plugins}}, tc.configured)
			if narrowed := got != internalqueue.SchedulingQueue(queue); narrowed != tc.want {
				t.Errorf("narrowed: %v, want %v", narrowed, tc.want)
			}
		})
	}
}

// newQueue is the scheduler's, from which the oldest pod comes first.
func newQueue(ctx context.Context, t *testing.T, known informers.SharedInformerFactory, opts ...internalqueue.Option) *internalqueue.PriorityQueue {
	ctx, cancel := context.WithCancel(ctx)
	recorder := metrics.NewMetricsAsyncRecorder(10, time.Second, ctx.Done())
	t.Cleanup(func() { cancel(); <-recorder.IsStoppedCh })
	first := func(a, b fwk.QueuedEntityInfo) bool { return a.GetTimestamp().Before(b.GetTimestamp()) }
	return internalqueue.NewPriorityQueue(first, known, append(opts, internalqueue.WithMetricsRecorder(recorder))...)
}

// TestNarrowedQueue has waiting pods of a real queue, all of them refused by a plugin that wants
// to know of every pod that is bound or deleted.
func TestNarrowedQueue(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	pod := func(name string) *st.PodWrapper { return st.MakePod().Name(name).Namespace("ns").UID(name) }
	waiting := []*corev1.Pod{
		pod("plain").Obj(),
		pod("node-affinity").NodeAffinityIn("zone", []string{"a"}, st.NodeSelectorTypeMatchExpressions).Obj(),
		pod("affinity").PodAffinityExists("app", "zone", st.PodAffinityWithRequiredReq).Obj(),
		pod("anti-affinity").PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq).Obj(),
		pod("preferred").PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq).Obj(),
		pod("soft").SpreadConstraint(1, "zone", corev1.ScheduleAnyway, nil, nil, nil, nil, nil).Obj(),
		pod("spread").SpreadConstraint(1, "zone", corev1.DoNotSchedule, nil, nil, nil, nil, nil).Obj(),
	}
	var asked []string
	hint := func(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
		asked = append(asked, pod.Name)
		return fwk.QueueSkip, nil
	}
	queue := newQueue(ctx, t, informers.NewSharedInformerFactory(fake.NewClientset(), 0), internalqueue.WithQueueingHintMapPerProfile(internalqueue.QueueingHintMapPerProfile{
		"": {bound: {{PluginName: names.InterPodAffinity, QueueingHintFn: hint}}},
	}))
	narrowed := narrow(ctx, queue, profile.Map{}, nil)
	for _, pod := range waiting {
		narrowed.Add(ctx, pod)
		entity, err := queue.Pop(logger)
		must(t, err)
		info := entity.(*framework.QueuedPodInfo)
		info.UnschedulablePlugins.Insert(names.InterPodAffinity)
		must(t, queue.AddUnschedulablePodIfNotPresent(logger, info, queue.SchedulingCycle()))
		queue.Done(info.Pod.UID)
	}
	for _, tc := range []struct {
		event fwk.ClusterEvent
		want  []string
	}{
		{framework.EventAssignedPodAdd, []string{"affinity", "spread"}},
		{framework.EventAssignedPodDelete, []string{"affinity", "anti-affinity", "node-affinity", "plain", "preferred", "soft", "spread"}},
	} {
		asked = nil
		narrowed.MoveAllToActiveOrBackoffQueue(logger, tc.event, nil, pod("bound").Node("n").Obj(), nil)
		if slices.Sort(asked); !slices.Equal(asked, tc.want) {
			t.Errorf("after %s these were asked: %v, want %v", tc.event.Label(), asked, tc.want)
		}
	}

	// A pod that is being tried at the moment is told of what happens, whatever it waits for.
	queue.Add(ctx, pod("tried").Obj())
	entity, err := queue.Pop(logger)
	must(t, err)
	asked = nil
	narrowed.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, pod("bound").Node("n").Obj(), nil)
	info := entity.(*framework.QueuedPodInfo)
	info.UnschedulablePlugins.Insert(names.InterPodAffinity)
	must(t, queue.AddUnschedulablePodIfNotPresent(logger, info, queue.SchedulingCycle()))
	if !slices.Contains(asked, "tried") {
		t.Errorf("a pod that was being tried was not asked: %v", asked)
	}
}

// What a binding can help is looked for only while there is a pod that it can help.
func TestNarrowedQueueWithNobodyToHelp(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	moves := &moved{}
	queue := narrow(ctx, moves, profile.Map{}, nil)
	plain := st.MakePod().Name("plain").Namespace("ns").UID("plain").Obj()
	affine := st.MakePod().Name("affine").Namespace("ns").UID("affine").PodAffinityExists("app", "zone", st.PodAffinityWithRequiredReq).Obj()
	tamed := affine.DeepCopy()
	tamed.Spec.Affinity = nil
	bind := func(want int) {
		t.Helper()
		moves.after = nil
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, plain, nil)
		if len(moves.after) != want {
			t.Errorf("after a binding pods are moved %d times, want %d", len(moves.after), want)
		}
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, plain, nil, nil)
		if len(moves.after) != want+1 {
			t.Error("after a deletion no pods are moved")
		}
	}
	bind(0)
	queue.Add(ctx, plain)
	bind(0)
	queue.Add(ctx, affine)
	bind(1)
	queue.Update(ctx, affine, tamed)
	bind(0)
	queue.Update(ctx, tamed, affine)
	bind(1)
	queue.Delete(logger, plain)
	bind(1)
	queue.Delete(logger, affine)
	bind(0)
}

// moved is a queue that notes after what it was to move pods.
type moved struct {
	internalqueue.SchedulingQueue
	after []fwk.ClusterEvent
}

func (m *moved) Add(context.Context, *corev1.Pod)                 {}
func (m *moved) Update(context.Context, *corev1.Pod, *corev1.Pod) {}
func (m *moved) Delete(klog.Logger, *corev1.Pod)                  {}
func (m *moved) MoveAllToActiveOrBackoffQueue(_ klog.Logger, event fwk.ClusterEvent, _, _ any, _ internalqueue.PreEnqueueCheck) {
	m.after = append(m.after, event)
}

// A pod that is refused while it waits at Permit is taken from the queue before the queue has noted that it is back. What happens in between is seen
// in what the queue logs. That the pod was refused cannot be written down, so that no update of it puts it back.
func TestDiscardedPodIsPutBack(t *testing.T) {
	l := newLoop(t, strings.Replace(loopConfiguration, "{name: PreBinder}", "{name: PreBinder}, {name: Waiter}", 1), func(*Options) {}, heights(0)...)
	w := l.waiter
	l.ctx = klog.NewContext(l.ctx, logr.New(w))
	l.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server writes nothing down")
	})
	l.start()
	l.create(webPod("waits"))
	l.until("the pod to wait", func() bool { return w.of("waits") != nil })
	l.create(webPod("refuses"))
	l.bound("refuses")
	l.bound("waits")
	if !closed(w.discarded) {
		t.Error("the queue has discarded no pod")
	}
}

// waiter has a pod wait at Permit until another one is there, which refuses it. It reads the scheduler's log.
type waiter struct {
	loop   *loop
	handle fwk.Handle

	// discarded is closed when the queue has discarded a pod, and back when the refused pod is in the queue.
	discarded, back         chan struct{}
	onceBack, onceDiscarded sync.Once
}

func (w *waiter) Name() string { return "Waiter" }

func (w *waiter) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	waits := w.of("waits")
	switch {
	case pod.Name == "refuses" && waits != nil:
		waits.Reject(w.Name(), "another one comes first")
		<-w.back
	case pod.Name == "waits" && !closed(w.back):
		// Whatever happens while it is being tried lets it be tried again.
		w.loop.sched.SchedulingQueue.Activate(klog.FromContext(w.loop.ctx), map[string]*corev1.Pod{"waits": pod})
		return fwk.NewStatus(fwk.Wait), time.Hour
	}
	return nil, 0
}

// of returns a pod that waits, nil if it does not.
func (w *waiter) of(name string) (found fwk.WaitingPod) {
	w.handle.IterateOverWaitingPods(func(p fwk.WaitingPod) {
		if p.GetPod().Name == name {
			found = p
		}
	})
	return found
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// What a log writes to.

func (w *waiter) Init(logr.RuntimeInfo)          {}
func (w *waiter) Enabled(level int) bool         { return level <= 3 }
func (w *waiter) WithValues(...any) logr.LogSink { return w }
func (w *waiter) WithName(string) logr.LogSink   { return w }

// Info keeps the queue from noting that a pod is back until that pod was taken.
func (w *waiter) Info(_ int, message string, _ ...any) {
	if message != "Pod moved to an internal scheduling queue" {
		return
	}
	w.onceBack.Do(func() {
		close(w.back)
		select {
		case <-w.discarded:
		case <-time.After(10 * time.Second):
			w.loop.Error("the queue does not discard a pod that it gives out before it has noted that it is back")
		}
	})
}

// Error sees that a pod is discarded.
func (w *waiter) Error(_ error, message string, _ ...any) {
	if message == "Discarding the popped entity" {
		w.onceDiscarded.Do(func() { close(w.discarded) })
	}
}
