// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

var apps = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}

// oddPods are the pods that something is to be thought of for: whether the answers of their filters last, and what becomes of them.
var oddPods = map[string]struct {
	pod     func(*st.PodWrapper) *st.PodWrapper
	lasting bool
	outcome string
}{
	"ordinary":     {func(p *st.PodWrapper) *st.PodWrapper { return p }, true, outcomeProposed},
	"selective":    {func(p *st.PodWrapper) *st.PodWrapper { return p.NodeSelector(map[string]string{"zone": "z"}) }, true, outcomeProposed},
	"tolerant":     {func(p *st.PodWrapper) *st.PodWrapper { return p.Toleration("t") }, true, outcomeProposed},
	"with a port":  {func(p *st.PodWrapper) *st.PodWrapper { return p.HostPort(80) }, true, outcomeProposed},
	"fits nowhere": {func(p *st.PodWrapper) *st.PodWrapper { return p.NodeSelector(map[string]string{"zone": "y"}) }, true, outcomeNone},
	"constrained": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.Annotation(clusterview.ConstraintsAnnotation, "node.labels.zone==z")
	}, true, outcomeProposed},
	// The informer may know of an address before the scheduler's cache does.
	"constrained by address": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.Annotation(clusterview.ConstraintsAnnotation, "node.ip==10.0.0.1")
	}, false, outcomeNone},
	"on a platform": {func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation(clusterview.PlatformsAnnotation, "linux") }, true, outcomeNone},
	"leased":        {func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation(clusterview.LeaseAnnotation, "1h") }, true, outcomeProposed},
	"excluding": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude")
	}, true, outcomeProposed},
	"limited": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.Annotation(clusterview.DomainLimitsAnnotation, "zone=5")
	}, false, outcomeProposed},
	"repelled": {func(p *st.PodWrapper) *st.PodWrapper { return p.Label("app", "w") }, false, outcomeNone},
	"repelling": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq)
	}, false, outcomeProposed},
	"hard constraint": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.SpreadConstraint(1, "zone", corev1.DoNotSchedule, apps, nil, nil, nil, nil)
	}, false, outcomeProposed},
	"soft constraint": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.SpreadConstraint(1, "zone", corev1.ScheduleAnyway, apps, nil, nil, nil, nil)
	}, true, outcomeProposed},
	"preferring": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq)
	}, true, outcomePreferences},
	// Of one that runs: see calm.
	"preferred far away": {func(p *st.PodWrapper) *st.PodWrapper { return p.Label("noise", "loud") }, true, outcomePreferences},
	"nominated":          {func(p *st.PodWrapper) *st.PodWrapper { return p.NominatedNodeName("a") }, true, outcomeNominated},
	"of a DaemonSet": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.OwnerReference("ds", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"})
	}, true, outcomePreassigned},
	"pinned": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.NodeAffinityIn(metav1.ObjectNameField, []string{"a"}, st.NodeSelectorTypeMatchFields)
	}, true, outcomePreassigned},
}

// calm is a pod that prefers to be far from noise.
func calm() *corev1.Pod {
	return st.MakePod().Namespace("ns").Name("calm").UID("calm").Node("b").PodAntiAffinityExists("noise", "zone", st.PodAntiAffinityWithPreferredReq).Obj()
}

// counted is how often an outcome was counted, or by fallbacks, how often pods took the full path for it.
func counted(t *testing.T, of *metrics.CounterVec, outcome string) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(of.WithLabelValues("espalier-scheduler", outcome))
	must(t, err)
	return n
}

// With the plugins that ship, the answers of an ordinary pod's filters last. One pod a plugin that looks further shows that it is noticed.
func TestOutcomes(t *testing.T) {
	r := newRig(t.Context(), t)
	for i := range 2 {
		r.cache.AddNode(r.logger, st.MakeNode().Name([]string{"a", "b"}[i]).Label("zone", "z").
			Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"}).Obj())
	}
	must(r, r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name("lonely").UID("lonely").Node("a").PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq).Obj()))
	must(r, r.cache.AddPod(r.logger, calm()))
	for name, tc := range oddPods {
		t.Run(name, func(t *testing.T) {
			before, back := counted(t, hints, tc.outcome), counted(t, fallbacks, tc.outcome)
			pod := tc.pod(st.MakePod().Namespace("ns").Name("p").UID("p").Container("image")).Obj()
			node, state := r.hint(pod)
			if got := lasting(state, pod, r.wrapped.(*hintingFramework).far); got != tc.lasting {
				t.Errorf("its answers last: %t, want %t, skipped are %v", got, tc.lasting, state.GetSkipFilterPlugins())
			}
			if counted(t, hints, tc.outcome) != before+1 || (node != "") != (tc.outcome == outcomeProposed) {
				t.Errorf("proposed %q, and it is no %s", node, tc.outcome)
			}
			if node == "" {
				back++
			}
			if counted(t, fallbacks, tc.outcome) != back {
				t.Errorf("that the pod takes the full path is not counted by its reason, %s, alone", tc.outcome)
			}
		})
	}
}

// stage plays the framework below a hinted profile.
type stage struct {
	framework.Framework
	result *fwk.PreFilterResult
	filter *fwk.Status
	stored []string // hints and nodes
	asked  int
}

func (s *stage) ProfileName() string { return "espalier-scheduler" }
func (s *stage) RunPreFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	return s.result, nil, nil
}
func (s *stage) RunFilterPluginsWithNominatedPods(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return s.filter
}
func (s *stage) GetNodeHint(context.Context, *corev1.Pod, fwk.PodSignature, fwk.CycleState, int64) string {
	s.asked++
	return "its own"
}
func (s *stage) StoreScheduleResults(_ context.Context, _ fwk.PodSignature, hint, chosen string, _ framework.SortedScoredNodes, _ int64) {
	s.stored = append(s.stored, hint, chosen)
}

// staged is a rig's wrapped profile over a stage.
func staged(t *testing.T) (*rig, *hintingFramework, *stage) {
	r := newRig(t.Context(), t)
	r.cache.AddNode(r.logger, st.MakeNode().Name("a").Obj())
	must(r, r.cache.UpdateSnapshot(r.logger, r.snapshot))
	p := *r.wrapped.(*hintingFramework)
	s := &stage{Framework: p.Framework}
	p.Framework = s
	return r, &p, s
}

func TestFullPathOf(t *testing.T) {
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
	group := framework.NewCycleState()
	group.SetPodGroupSchedulingCycle(framework.NewCycleState())
	for name, tc := range map[string]struct {
		state   *framework.CycleState
		result  *fwk.PreFilterResult
		filter  *fwk.Status
		outcome string
	}{
		"a pod that is confined":        {framework.NewCycleState(), &fwk.PreFilterResult{NodeNames: sets.New("a")}, nil, outcomeConfined},
		"a pod of a group":              {group, nil, nil, outcomeGroup},
		"a filter that cannot answer":   {framework.NewCycleState(), nil, fwk.AsStatus(errors.New("no answer")), outcomeError},
		"a node that is refused for it": {framework.NewCycleState(), nil, fwk.NewStatus(fwk.Unschedulable), outcomeNone},
	} {
		t.Run(name, func(t *testing.T) {
			r, p, s := staged(t)
			s.result, s.filter = tc.result, tc.filter
			before := counted(t, hints, tc.outcome)
			p.RunPreFilterPlugins(r.ctx, tc.state, pod)
			if node := p.GetNodeHint(r.ctx, pod, nil, tc.state, 1); node != "its own" || counted(t, hints, tc.outcome) != before+1 {
				t.Errorf("got %q, and it is no %s", node, tc.outcome)
			}
		})
	}
}

// The framework hears nothing of our hints, and all of its own.
func TestStoreScheduleResults(t *testing.T) {
	for name, tc := range map[string]struct {
		signature    fwk.PodSignature
		hint, chosen string
		used, unused float64
		stored       string
	}{
		"taken":             {nil, "a", "a", 1, 0, ""},
		"not taken":         {nil, "a", "b", 0, 1, ""},
		"none":              {nil, "", "b", 0, 0, ""},
		"the framework's":   {fwk.PodSignature("x"), "a", "a", 0, 0, "a"},
		"nor of its choice": {fwk.PodSignature("x"), "a", "b", 0, 0, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r, p, s := staged(t)
			used, unused, back := counted(t, hints, outcomeUsed), counted(t, hints, outcomeUnused), counted(t, fallbacks, outcomeUnused)
			p.StoreScheduleResults(r.ctx, tc.signature, tc.hint, tc.chosen, nil, 1)
			if counted(t, hints, outcomeUsed) != used+tc.used || counted(t, hints, outcomeUnused) != unused+tc.unused || counted(t, fallbacks, outcomeUnused) != back+tc.unused {
				t.Error("it is not counted")
			}
			if len(s.stored) != 2 || s.stored[0] != tc.stored || s.stored[1] != tc.chosen {
				t.Errorf("the framework is told %q", s.stored)
			}
		})
	}
}

// nowhere is a rig of nodes that a pod does not fit on, for two reasons.
func nowhere(t *testing.T) (r *rig, pod *corev1.Pod) {
	r = newRig(t.Context(), t)
	for i, zone := range []string{"a", "b", "b"} {
		r.cache.AddNode(r.logger, st.MakeNode().Name([]string{"n1", "n2", "n3"}[i]).Label("zone", zone).
			Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10", corev1.ResourceCPU: "1"}).Obj())
	}
	return r, st.MakePod().Namespace("ns").Name("p").UID("p").NodeSelector(map[string]string{"zone": "b"}).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "2"}).Obj()
}

// A pod that fits nowhere is filtered on all nodes once, and told the same ever after.
func TestRefusedAtOnce(t *testing.T) {
	r, pod := nowhere(t)
	node, state, refused := r.propose(pod)
	if node != "" || refused != nil {
		t.Fatalf("the first time %q is proposed, and the diagnosis is %v", node, refused)
	}
	d := r.diagnosis(r.wrapped, state, pod)
	want := r.words(r.wrapped, state, pod, d)
	asked := &askedFor{Framework: r.wrapped.(*hintingFramework).Framework}
	r.wrapped.(*hintingFramework).Framework = asked
	before := counted(t, hints, outcomeRefused)
	_, state, refused = r.propose(pod)
	if refused == nil {
		t.Fatal("it is not refused at once")
	}
	if got := r.words(r.wrapped, state, pod, refused); got != want || !refused.UnschedulablePlugins.Equal(d.UnschedulablePlugins) {
		t.Errorf("it is told\n%s (%v), not\n%s (%v)", got, refused.UnschedulablePlugins, want, d.UnschedulablePlugins)
	}
	if asked.nodes != 0 || asked.preemptions != 0 || counted(t, hints, outcomeRefused) != before+1 {
		t.Errorf("%d nodes were filtered, and preemption tried %d times", asked.nodes, asked.preemptions)
	}
	// One more pod on a node: it alone is filtered again.
	must(r, r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name("q").UID("q").Node("n3").Obj()))
	if _, _, refused := r.propose(pod); refused == nil || asked.nodes != 1 {
		t.Errorf("with a pod on n3 %d nodes were filtered, refused at once: %t", asked.nodes, refused != nil)
	}
	// A pod of a lower priority may have to go.
	must(r, r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name("low").UID("low").Node("n3").Priority(-1).Obj()))
	if _, _, refused := r.propose(pod); refused != nil {
		t.Error("refused without a try to preempt a pod of lower priority")
	}
	// Room is room.
	r.cache.AddNode(r.logger, st.MakeNode().Name("n4").Label("zone", "b").
		Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10", corev1.ResourceCPU: "4"}).Obj())
	if node, _, _ := r.propose(pod); node != "n4" {
		t.Errorf("%q is proposed, want the new node", node)
	}
}

// A nomination that comes after the filters were asked adds to the reasons of its node, and takes them along when it ends.
func TestRegression_RefusedAtOnceBesideNominatedPods(t *testing.T) {
	r := newRig(t.Context(), t)
	for _, name := range []string{"n1", "n2"} {
		r.cache.AddNode(r.logger, st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "0", corev1.ResourceCPU: "4"}).Obj())
	}
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "3"}).Obj()
	told := func() (string, string) {
		_, state, refused := r.propose(pod)
		if refused == nil { // what preemption comes to is to be learned first
			r.words(r.wrapped, state, pod, r.diagnosis(r.wrapped, state, pod))
			if _, state, refused = r.propose(pod); refused == nil {
				t.Fatal("it is not refused at once")
			}
		}
		judged := framework.NewCycleState()
		r.judge.RunPreFilterPlugins(r.ctx, judged, pod)
		return r.words(r.wrapped, state, pod, refused), r.words(r.judge, judged, pod, r.diagnosis(r.judge, judged, pod))
	}
	if got, want := told(); got != want {
		t.Fatalf("it is told\n%s, not\n%s", got, want)
	}
	info, err := framework.NewPodInfo(st.MakePod().Namespace("ns").Name("q").UID("q").Priority(1).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).Obj())
	must(r, err)
	r.nominator.AddNominatedPod(r.logger, info, &fwk.NominatingInfo{NominatedNodeName: "n1", NominatingMode: fwk.ModeOverride})
	if got, want := told(); got != want || !strings.Contains(got, "1 Insufficient cpu, 2 Too many pods") {
		t.Errorf("beside a nominated pod it is told\n%s, not\n%s", got, want)
	}
	r.nominator.DeleteNominatedPodIfExists(info.Pod)
	if got, want := told(); got != want || strings.Contains(got, "Insufficient cpu") {
		t.Errorf("when the nomination has ended it is told\n%s, not\n%s", got, want)
	}
}

// A plugin that somebody else adds may say anything to a pod that fits nowhere.
func TestForeseeable(t *testing.T) {
	shipped := []config.Plugin{{Name: names.DynamicResources}, {Name: names.DefaultPreemption}}
	if !foreseeable(shipped) || !foreseeable(nil) || foreseeable(append(shipped, config.Plugin{Name: "Another"})) {
		t.Error("pods are refused at once beside the plugins that ship, and beside no others")
	}
}

// askedFor counts what a framework is asked.
type askedFor struct {
	framework.Framework
	nodes, preemptions int
}

func (a *askedFor) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	a.nodes++
	return a.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
}

func (a *askedFor) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	a.preemptions++
	return a.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
}

// crowd is a Parallelizer that notes what it is given and does nothing.
type crowd struct{ pieces []int }

func (c *crowd) Until(_ context.Context, pieces int, _ workqueue.DoWorkPieceFunc, _ string) {
	c.pieces = append(c.pieces, pieces)
}

func TestOnePieceOfWorkIsDoneOnTheSpot(t *testing.T) {
	r := newRig(t.Context(), t)
	if _, ok := r.wrapped.Parallelizer().(inlineParallelizer); !ok {
		t.Errorf("a wrapped profile's Parallelizer is a %T", r.wrapped.Parallelizer())
	}
	others := &crowd{}
	var done []int
	do := func(piece int) { done = append(done, piece) }
	p := inlineParallelizer{others}
	for pieces := range 3 {
		p.Until(r.ctx, pieces, do, "")
	}
	if !slices.Equal(done, []int{0}) || !slices.Equal(others.pieces, []int{0, 2}) {
		t.Errorf("of 0, 1 and 2 pieces of work %v are done on the spot, and %v handed on", done, others.pieces)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	if p.Until(ctx, 1, do, ""); len(done) > 1 {
		t.Error("work is done for a pod whose cycle has ended")
	}
}
