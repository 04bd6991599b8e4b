// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// registry is an API server that takes what is written down of pods when it is let. Of a client, a profile and a queue it is what is used.
type registry struct {
	*testing.T
	framework.Framework
	clientset.Interface
	typedcorev1.CoreV1Interface
	typedcorev1.PodInterface

	stop     context.CancelFunc
	profiles profile.Map
	fail     scheduler.FailureHandlerFn
	release  chan struct{}
	cacher   fwk.APICacher

	mu     sync.Mutex // guards queued, began, ends
	queued int        // how many were put back into the queue
	began  int
	ends   []error // what the contexts said of those that have ended
}

func newRegistry(t *testing.T) *registry {
	ctx, stop := context.WithCancel(t.Context())
	r := &registry{T: t, stop: stop, release: make(chan struct{})}
	r.profiles = profile.Map{"one": r}
	r.fail = failAsync(ctx, r.profiles, nil, func(_ context.Context, f framework.Framework, pod *framework.QueuedPodInfo, _ *fwk.Status, nominating *fwk.NominatingInfo, _ time.Time) {
		r.note(func() { r.queued++ })
		refused := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}
		if cacher := f.APICacher(); cacher != nil {
			if _, err := cacher.PatchPodStatus(pod.Pod, []*corev1.PodCondition{refused}, nominating); err != nil {
				t.Error(err)
			}
			return
		}
		status := corev1.PodStatus{Conditions: []corev1.PodCondition{*refused}}
		if err := util.PatchPodStatus(ctx, f.ClientSet(), pod.Pod.Name, pod.Pod.Namespace, &pod.Pod.Status, &status); err != nil {
			t.Error(err)
		}
	})
	return r
}

// The profile, its client, and what that does.

func (r *registry) RunBindPlugins(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}
func (r *registry) APICacher() fwk.APICacher             { return r.cacher }
func (r *registry) ClientSet() clientset.Interface       { return r }
func (r *registry) CoreV1() typedcorev1.CoreV1Interface  { return r }
func (r *registry) Pods(string) typedcorev1.PodInterface { return r }
func (r *registry) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	r.note(func() { r.began++ })
	select {
	case <-r.release:
	case <-ctx.Done():
	}
	r.note(func() { r.ends = append(r.ends, ctx.Err()) })
	return &corev1.Pod{}, nil
}

func (r *registry) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// back is how many pods are back in the queue.
func (r *registry) back() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued
}

// seen is how many were begun, and what the contexts said of those that have ended.
func (r *registry) seen() (began int, ends []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.began, slices.Clone(r.ends)
}

// returns reports whether a call returns before anything is let be written.
func (r *registry) returns(call func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	synctest.Wait()
	return closed(ended)
}

// refuse has a pod refused in a cycle whose context ends with it.
func (r *registry) refuse(pod *corev1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo) {
	cycle, cancel := context.WithCancel(r.Context())
	defer cancel()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		r.Error(err)
	}
	r.fail(cycle, r.profiles["one"], &framework.QueuedPodInfo{PodInfo: info}, status, nominating, time.Now())
}

func (r *registry) bind(pod *corev1.Pod) {
	r.profiles["one"].RunBindPlugins(r.Context(), nil, pod, "node")
}

var (
	rejected = fwk.NewStatus(fwk.Unschedulable, "no room")
	nobody   = &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}
)

// Only what the next cycle need not know of is written while it runs.
func TestFailAsync(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*corev1.Pod)
		status     *fwk.Status
		nominating *fwk.NominatingInfo
		want       bool
	}{
		"refused":             {nil, rejected, nobody, true},
		"refused for good":    {nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable), nil, true},
		"an error":            {nil, fwk.AsStatus(errors.New("no answer")), nobody, false},
		"withheld":            {nil, fwk.AsStatus(fmt.Errorf("a pod: %w", withheldError{errors.New("later")})), nobody, true},
		"nominated":           {nil, rejected, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n"}, false},
		"no longer nominated": {func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }, rejected, nobody, false},
		"being bound":         {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, rejected, nobody, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry(t)
				pod := st.MakePod().Name("p").UID("p").Obj()
				if tc.change != nil {
					tc.change(pod)
				}
				if got := r.returns(func() { r.refuse(pod, tc.status, tc.nominating) }); got != tc.want {
					t.Errorf("the next cycle begins before it is written: %t", got)
				}
				if r.back() != 1 {
					t.Error("the next cycle begins before the pod is back in the queue")
				}
				close(r.release)
				synctest.Wait()
				if began, ends := r.seen(); began != 1 || len(ends) != 1 || ends[0] != nil {
					t.Errorf("it was begun %d times, and ended with %v", began, ends)
				}
			})
		})
	}
}

// extender is one that binds, or not.
type extender struct {
	fwk.Extender
	binds bool
}

func (b extender) IsBinder() bool { return b.binds }

// Where others count on it, a refusal is written before the next cycle.
func TestFailAsyncLeavesOthersAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		extenders []fwk.Extender
		want      bool
	}{
		"an extender that does not bind": {[]fwk.Extender{extender{}}, true},
		"one that binds":                 {[]fwk.Extender{extender{}, extender{binds: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &hanging{}
			profiles := profile.Map{"one": before}
			failAsync(t.Context(), profiles, tc.extenders, nil)
			if wrapped := profiles["one"] != framework.Framework(before); wrapped != tc.want {
				t.Errorf("refusals are written beside: %t", wrapped)
			}
		})
	}
}

// What comes of a pod later is written later, and other pods are not kept waiting for it.
func TestFailAsyncKeepsTheOrderOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		pod, other := st.MakePod().Name("p").UID("p").Obj(), st.MakePod().Name("q").UID("q").Obj()
		r.refuse(pod, rejected, nobody)
		if r.returns(func() { r.bind(pod) }) {
			t.Error("it is bound before it is written that it was refused")
		}
		if !r.returns(func() { r.bind(other) }) {
			t.Error("another pod waits")
		}
		waits := !r.returns(func() { r.refuse(pod, rejected, nobody) })
		if began, _ := r.seen(); !waits || began != 1 {
			t.Errorf("it is written %d times at once", began)
		}
		close(r.release)
		synctest.Wait()
		if began, _ := r.seen(); began != 2 {
			t.Errorf("it was written %d times, want twice", began)
		}
	})
}

// What is written already is not written again.
func TestFailAsyncWritesWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		close(r.release)
		pod := st.MakePod().Name("p").UID("p").Condition(corev1.PodScheduled, corev1.ConditionFalse, "").Obj()
		r.refuse(pod, rejected, nobody)
		synctest.Wait()
		if began, _ := r.seen(); began != 0 || r.back() != 1 {
			t.Errorf("the same condition was written %d times, and the pod put back %d times", began, r.back())
		}
	})
}

// So many are written at a time, and those that are end with the scheduler.
func TestFailAsyncIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		refuse := func(i int) func() {
			return func() { r.refuse(st.MakePod().Name("p").UID(string(rune('a'+i))).Obj(), rejected, nobody) }
		}
		for i := range mostFailures {
			if !r.returns(refuse(i)) {
				t.Fatalf("pod %d waits", i)
			}
		}
		if r.returns(refuse(mostFailures)) {
			t.Errorf("more than %d are written at once", mostFailures)
		}
		r.stop()
		synctest.Wait()
		if _, ends := r.seen(); len(ends) != mostFailures+1 || ends[0] == nil {
			t.Errorf("%d have ended with the scheduler: %v", len(ends), ends)
		}
	})
}

// A refused pod that an event may help meanwhile is tried again at once. The queue takes it back before it notes that it is no longer
// being tried; and one that is taken out between the two is thrown away, and never tried again. So a pod has to be back before the next one
// is taken out.
func TestFailAsyncLosesNoPod(t *testing.T) {
	logger := klog.New(nil) // each try would be logged in ten lines
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), 30*time.Second)
	defer cancel()
	helps := func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil }
	queue := newQueue(ctx, t, informers.NewSharedInformerFactory(fake.NewClientset(), 0), internalqueue.WithQueueingHintMapPerProfile(internalqueue.QueueingHintMapPerProfile{
		"": {framework.EventUnscheduledPodAdd: {{PluginName: "refusing", QueueingHintFn: helps}}},
	}))
	context.AfterFunc(ctx, queue.Close)

	profiles := profile.Map{"one": &registry{T: t}}
	fail := failAsync(ctx, profiles, nil, func(_ context.Context, _ framework.Framework, pod *framework.QueuedPodInfo, _ *fwk.Status, _ *fwk.NominatingInfo, _ time.Time) {
		pod = pod.DeepCopy()
		pod.UnschedulablePlugins = sets.New("refusing")
		if err := queue.AddUnschedulablePodIfNotPresent(logger, pod, 0); err != nil {
			t.Error(err)
		}
	})
	queue.Add(ctx, st.MakePod().Name("p").UID("p").Obj())
	const tries = 20000
	for i := range tries {
		entity, err := queue.Pop(logger)
		if err != nil || entity == nil {
			t.Fatalf("the pod was lost after %d of %d tries: %v", i, tries, err)
		}
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnscheduledPodAdd, nil, nil, nil)
		fail(ctx, profiles["one"], entity.(*framework.QueuedPodInfo), rejected, nobody, time.Now())
	}
}

// A pod that must not be decided now is not, and any other is as before.
func TestWithhold(t *testing.T) {
	later := errors.New("later")
	decide := func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		return scheduler.ScheduleResult{SuggestedHost: "node"}, nil
	}
	held := func(pod *corev1.Pod) error {
		if pod.Name == "held" {
			return later
		}
		return nil
	}
	for name, want := range map[string]error{"held": later, "other": nil} {
		info, err := framework.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		must(t, err)
		result, err := withhold(decide, held)(t.Context(), nil, nil, &framework.QueuedPodInfo{PodInfo: info})
		if !errors.Is(err, want) || (result.SuggestedHost == "node") != (want == nil) {
			t.Errorf("the pod %q gets %+v, %v", name, result, err)
		}
		if err != nil && !mayWait(info.Pod, fwk.AsStatus(err), nil) {
			t.Error("the next cycle waits until it is written that the pod waits")
		}
	}
}
