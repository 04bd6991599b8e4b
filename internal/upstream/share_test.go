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

	"github.com/espalier-scheduler/espalier/internal/clusterview"
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
	must(s, s.known.Core().V1().Pods().Informer().GetIndexer().Add(pod))
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

// ends has a node with so much room end so long after noon.
func (r *rig) ends(name string, after time.Duration) *corev1.Node {
	n := st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"}).
		Annotation(clusterview.ValidUntilAnnotation, noon.Add(after).Format(time.RFC3339)).Obj()
	r.cache.AddNode(r.logger, n)
	return n
}

// What filters said of one pod is remembered for the next with the same lease. A node that took the first may not live long enough for the
// second; one that did not live long enough is not asked about again, unless the clock is put back.
func TestAnswersOverTime(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", 2*time.Hour)
	n2 := r.ends("n2", 90*time.Minute)
	web := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web")
	}
	pod := web("p").Annotation(clusterview.LeaseAnnotation, "1h").Obj()
	asked := &askedFor{Framework: r.wrapped.(*hintingFramework).Framework}
	r.wrapped.(*hintingFramework).Framework = asked
	want := func(why, node string, questions int) {
		t.Helper()
		asked.nodes = 0
		if got, _, refused := r.propose(pod); got != node || refused != nil || asked.nodes != questions {
			t.Errorf("%s: %q is proposed, %d nodes are asked about, want %q of %d; refused %t", why, got, asked.nodes, node, questions, refused != nil)
		}
	}
	want("the one that lives longer", "n1", 1)
	r.clock.SetTime(noon.Add(45 * time.Minute))
	want("an answer of before is asked for anew", "n1", 1)
	must(r, r.cache.AddPod(r.logger, web("q").Node("n1").Obj()))
	want("n2 has fewer pods, and lives for 45 minutes more", "n1", 2)
	want("which is remembered", "n1", 1)
	r.clock.SetTime(noon.Add(15 * time.Minute))
	want("until the clock is put back", "n2", 1)
	r.clock.SetTime(noon.Add(45 * time.Minute))
	want("it lives too short a time again", "n1", 2)
	longer := n2.DeepCopy()
	longer.Annotations[clusterview.ValidUntilAnnotation] = noon.Add(24 * time.Hour).Format(time.RFC3339)
	r.cache.UpdateNode(r.logger, n2, longer)
	want("until it is given a later end, by which nodes are compared anew", "n2", 2)
	r.clock.SetTime(noon.Add(25 * time.Hour))
	want("in the end nobody lives long enough", "", 2)
}

// A pod for which no node lives long enough is told so, once by all nodes and then at once.
func TestRefusedForItsLease(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", time.Hour)
	r.ends("n2", -time.Hour)
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Annotation(clusterview.LeaseAnnotation, "72h").Obj()
	const want = "0/2 nodes are available: 2 node(s) ended before the pod's lease would."
	_, state, _ := r.propose(pod)
	if got := r.words(r.wrapped, state, pod, r.diagnosis(r.wrapped, state, pod)); !strings.HasPrefix(got, want) {
		t.Errorf("it is told\n%s, not\n%s", got, want)
	}
	_, state, refused := r.propose(pod)
	if refused == nil {
		t.Fatal("it is not refused at once")
	}
	if got := r.words(r.wrapped, state, pod, refused); !strings.HasPrefix(got, want) {
		t.Errorf("the second time it is told\n%s, not\n%s", got, want)
	}
}

// The fast path and the full path choose the one that lives longer, and the lease is in the binding of both.
func TestTheNodeThatLivesLongerIsProposed(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", time.Hour)
	r.ends("n2", 30*time.Hour)
	r.ends("n3", 20*time.Hour)
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Annotation(clusterview.LeaseAnnotation, "10h").Obj()
	node, state := r.hint(pod)
	if _, best := r.best(pod); node != "n2" || len(best) != 1 || best[0] != node {
		t.Errorf("%s is proposed, and %v are best", node, best)
	}
	for _, f := range []framework.Framework{r.wrapped, r.judge} {
		if f == r.judge {
			state = framework.NewCycleState()
			if _, status, _ := f.RunPreFilterPlugins(r.ctx, state, pod); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
		if status := f.RunReservePluginsReserve(r.ctx, state, pod, node); status.Code() != fwk.Success {
			t.Fatal(status)
		}
		if got, want := clusterview.ReadBinding(state)[clusterview.LeaseExpiryAnnotation], noon.Add(10*time.Hour).Format(time.RFC3339); got != want {
			t.Errorf("the lease ends %s, want %s", got, want)
		}
	}
}
