// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// owner is an Ownership, and the plugin that goes with it, for pods by their names.
type owner struct {
	own     []string
	begun   int // bindings that are under way
	times   int // bindings that were begun
	changed func()
}

func (o *owner) Name() string              { return "Owner" }
func (o *owner) Identity() string          { return "me" }
func (o *owner) Owns(pod *corev1.Pod) bool { return slices.Contains(o.own, pod.Name) }
func (o *owner) OnChange(changed func())   { o.changed = changed }

func (o *owner) Begin(pod *corev1.Pod) (func(), bool) {
	if !o.Owns(pod) {
		return nil, false
	}
	o.begun++
	o.times++
	return func() { o.begun-- }, true
}

func (o *owner) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if o.Owns(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// gated is a profile of one plugin that lets pods in.
type gated struct {
	framework.Framework
	by    fwk.PreEnqueuePlugin
	binds func() *fwk.Status
}

func (g *gated) RunPostFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return &fwk.PostFilterResult{}, nil
}

func (g *gated) PreEnqueuePlugins() []fwk.PreEnqueuePlugin  { return []fwk.PreEnqueuePlugin{g.by} }
func (g *gated) EnqueueExtensions() []fwk.EnqueueExtensions { return nil }
func (g *gated) RunBindPlugins(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return g.binds()
}

// sharing is a scheduler that is shared, with a real queue. Its loop and its handler are played.
type sharing struct {
	*testing.T
	ctx    context.Context
	logger klog.Logger
	sched  *Scheduler
	owner  *owner
	known  informers.SharedInformerFactory
	failed []string
}

func newSharing(t *testing.T) *sharing {
	logger, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	s := &sharing{T: t, ctx: ctx, logger: logger, owner: &owner{}, known: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	queue := newQueue(ctx, t, s.known, internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{"": {"Owner": s.owner}}))
	s.sched = &Scheduler{
		SchedulingQueue: queue, NextEntity: queue.Pop, Profiles: profile.Map{"": &gated{by: s.owner}},
		FailureHandler: func(_ context.Context, _ framework.Framework, pod *framework.QueuedPodInfo, _ *fwk.Status, _ *fwk.NominatingInfo, _ time.Time) {
			s.failed = append(s.failed, pod.Pod.Name)
		},
	}
	must(t, share(ctx, s.sched, s.known.Core().V1().Pods().Lister(), "Owner", nil, s.owner))
	return s
}

// add has the scheduler see a pod that waits.
func (s *sharing) add(name string) *corev1.Pod {
	s.Helper()
	pod := st.MakePod().Name(name).Namespace("ns").UID(name).Obj()
	if err := s.known.Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
		s.Fatal(err)
	}
	s.sched.SchedulingQueue.Add(s.ctx, pod)
	return pod
}

// next takes up the next pod, of which there must be one.
func (s *sharing) next(want string) *framework.QueuedPodInfo {
	s.Helper()
	entity, err := s.sched.NextEntity(s.logger)
	info, ok := entity.(*framework.QueuedPodInfo)
	if err != nil || !ok || info.Pod.Name != want {
		s.Fatalf("next is %v, %v; want %s", entity, err, want)
	}
	return info
}

// waits wants these pods to be tried, and those to wait.
func (s *sharing) waits(tried, waiting []string) {
	s.Helper()
	names := func(pods []*corev1.Pod) (all []string) {
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		slices.Sort(all)
		return all
	}
	if got := names(s.sched.SchedulingQueue.PodsInActiveQ()); !slices.Equal(got, tried) {
		s.Errorf("%v are tried, want %v", got, tried)
	}
	if got := names(s.sched.SchedulingQueue.UnschedulablePods()); !slices.Equal(got, waiting) {
		s.Errorf("%v wait, want %v", got, waiting)
	}
}

// Pods of others are not tried, and are as soon as they are its own.
func TestShareTriesItsOwnPods(t *testing.T) {
	s := newSharing(t)
	s.owner.own = []string{"a"}
	for _, name := range []string{"a", "b", "c"} {
		s.add(name)
	}
	s.waits([]string{"a"}, []string{"b", "c"})
	s.owner.own = []string{"a", "b"}
	s.owner.changed()
	s.waits([]string{"a", "b"}, []string{"c"})
}

// What has become another's is handed back when it is taken up, as it is by then, and nobody hears of it.
func TestShareHandsBack(t *testing.T) {
	s := newSharing(t)
	s.owner.own = []string{"lost", "gone", "bound", "own"}
	for _, name := range []string{"lost", "gone", "bound"} {
		s.add(name)
	}
	s.owner.own = []string{"own"}
	pods := s.known.Core().V1().Pods().Informer().GetIndexer()
	must(t, pods.Delete(st.MakePod().Name("gone").Namespace("ns").Obj()))
	must(t, pods.Update(st.MakePod().Name("bound").Namespace("ns").UID("bound").Node("n").Obj()))
	s.add("own")
	own := s.next("own")
	s.waits(nil, []string{"lost"})

	// It is refused, and is its own or is not.
	refused := fwk.NewStatus(fwk.Unschedulable)
	s.sched.FailureHandler(s.ctx, s.sched.Profiles[""], own, refused, nil, time.Now())
	if !slices.Equal(s.failed, []string{"own"}) {
		t.Errorf("the failures of %v are handled", s.failed)
	}
	s.owner.own = nil
	s.sched.FailureHandler(s.ctx, s.sched.Profiles[""], own, refused, nil, time.Now())
	s.waits(nil, []string{"lost", "own"})
	if len(s.failed) != 1 {
		t.Errorf("the failures of %v are handled, of which one is another's", s.failed)
	}
	// Its turn comes again.
	s.owner.own = []string{"own"}
	s.owner.changed()
	s.next("own")
}

// A pod that is another's by now is not bound.
func TestShareBinds(t *testing.T) {
	s := newSharing(t)
	under := 0
	f, _ := s.sched.Profiles[""].(*sharedFramework)
	f.Framework.(*gated).binds = func() *fwk.Status { under = s.owner.begun; return fwk.AsStatus(errors.New("bound")) }
	pod := s.add("a")
	if status := f.RunBindPlugins(s.ctx, nil, pod, "n"); !errors.Is(status.AsError(), errNotOurs) || under > 0 {
		t.Errorf("a pod of another's: %v", status)
	}
	s.owner.own = []string{"a"}
	if status := f.RunBindPlugins(s.ctx, nil, pod, "n"); status.Message() != "bound" || under != 1 || s.owner.begun != 0 {
		t.Errorf("a pod of its own: %v, begun %d and then %d", status, under, s.owner.begun)
	}
}

// Nobody makes way for a pod that is another's by now.
func TestShareEvicts(t *testing.T) {
	s := newSharing(t)
	pod := s.add("a")
	for _, own := range []bool{false, true} {
		if own {
			s.owner.own = []string{"a"}
		}
		if result, status := s.sched.Profiles[""].RunPostFilterPlugins(s.ctx, nil, pod, nil); status.IsSuccess() != own || (result != nil) != own {
			t.Errorf("its own, %t: %v, %v", own, result, status)
		}
	}
}

// A profile whose pods all replicas would place is refused, and one with a plugin that wants a single scheduler.
func TestShareNeedsThePlugin(t *testing.T) {
	for want, names := range map[string][]string{"plugins.preEnqueue": {"Another"}, "wants one scheduler": {"Owner", "Owner"}} {
		sched := &Scheduler{Profiles: profile.Map{"mine": &gated{by: &owner{}}}}
		err := share(t.Context(), sched, nil, names[0], names[1:], &owner{})
		if err == nil || !strings.Contains(err.Error(), "profile mine") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
