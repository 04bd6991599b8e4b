// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

var apps = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}

// oddPods are the pods that something is to be thought of for: whether the answers
// of their filters last, and what becomes of them.
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
	"on a platform": {func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation(clusterview.PlatformsAnnotation, "linux") }, true, outcomeNone},
	"excluding": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.Annotation(clusterview.PlacementAnnotation, "spread=zone;missing=Exclude")
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
	"nominated": {func(p *st.PodWrapper) *st.PodWrapper { return p.NominatedNodeName("a") }, true, outcomeNominated},
	"of a DaemonSet": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.OwnerReference("ds", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"})
	}, true, outcomePreassigned},
	"pinned": {func(p *st.PodWrapper) *st.PodWrapper {
		return p.NodeAffinityIn(metav1.ObjectNameField, []string{"a"}, st.NodeSelectorTypeMatchFields)
	}, true, outcomePreassigned},
}

// counted is how often an outcome was counted.
func counted(t *testing.T, outcome string) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(hints.WithLabelValues("espalier-scheduler", outcome))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fellBack is how often pods took the full path for a reason.
func fellBack(t *testing.T, reason string) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(fallbacks.WithLabelValues("espalier-scheduler", reason))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOutcomes(t *testing.T) {
	r := newRig(t.Context(), t)
	for i := range 2 {
		r.cache.AddNode(r.logger, st.MakeNode().Name([]string{"a", "b"}[i]).Label("zone", "z").
			Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"}).Obj())
	}
	r.must(r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name("lonely").UID("lonely").Node("a").PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq).Obj()))
	for name, tc := range oddPods {
		t.Run(name, func(t *testing.T) {
			before, back := counted(t, tc.outcome), fellBack(t, tc.outcome)
			node, _ := r.hint(tc.pod(st.MakePod().Namespace("ns").Name("p").UID("p").Container("image")).Obj())
			if counted(t, tc.outcome) != before+1 || (node != "") != (tc.outcome == outcomeProposed) {
				t.Errorf("proposed %q, and it is no %s", node, tc.outcome)
			}
			if node == "" {
				back++
			}
			if fellBack(t, tc.outcome) != back {
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
func staged(t *testing.T) (*rig, *hinted, *stage) {
	r := newRig(t.Context(), t)
	r.cache.AddNode(r.logger, st.MakeNode().Name("a").Obj())
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
	p := *r.wrapped.(*hinted)
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
			before := counted(t, tc.outcome)
			p.RunPreFilterPlugins(r.ctx, tc.state, pod)
			if node := p.GetNodeHint(r.ctx, pod, nil, tc.state, 1); node != "its own" || counted(t, tc.outcome) != before+1 {
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
			used, unused, back := counted(t, outcomeUsed), counted(t, outcomeUnused), fellBack(t, outcomeUnused)
			p.StoreScheduleResults(r.ctx, tc.signature, tc.hint, tc.chosen, nil, 1)
			if counted(t, outcomeUsed) != used+tc.used || counted(t, outcomeUnused) != unused+tc.unused || fellBack(t, outcomeUnused) != back+tc.unused {
				t.Error("it is not counted")
			}
			if len(s.stored) != 2 || s.stored[0] != tc.stored || s.stored[1] != tc.chosen {
				t.Errorf("the framework is told %q", s.stored)
			}
		})
	}
}

// A nomination takes room on a node that does not change: of two zones that are drawn,
// the one with more nodes that fit is best.
func TestNominationsChangeWhatFits(t *testing.T) {
	r := newRig(t.Context(), t)
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		r.cache.AddNode(r.logger, st.MakeNode().Name(name).Label("zone", name[:1]).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "1"}).Obj())
	}
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Annotation(clusterview.PlacementAnnotation, "spread=zone").Obj()
	want := func(node string) {
		t.Helper()
		if got, _ := r.hint(pod); got != node {
			t.Errorf("%s is proposed, not %s", got, node)
		}
	}
	want("a1")
	info, err := framework.NewPodInfo(st.MakePod().Namespace("ns").Name("q").UID("q").Priority(1).Obj())
	r.must(err)
	nominating := &fwk.NominatingInfo{NominatedNodeName: "a2", NominatingMode: fwk.ModeOverride}
	below := &preempting{stage{Framework: r.judge}, nominating}
	(&noting{below, r.wrapped.(*hinted).Framework.(*noting).doubters}).RunPostFilterPlugins(r.ctx, nil, info.Pod, nil)
	r.nominator.AddNominatedPod(r.logger, info, nominating)
	want("b1")
	r.nominator.DeleteNominatedPodIfExists(info.Pod)
	want("a1")
}

// preempting is a framework whose preemption clears a node.
type preempting struct {
	stage
	info *fwk.NominatingInfo
}

func (p *preempting) RunPostFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return &fwk.PostFilterResult{NominatingInfo: p.info}, nil
}

// crowd is a Parallelizer that notes what it is given and does nothing.
type crowd struct{ pieces []int }

func (c *crowd) Until(_ context.Context, pieces int, _ workqueue.DoWorkPieceFunc, _ string) {
	c.pieces = append(c.pieces, pieces)
}

func TestOnePieceOfWorkIsDoneOnTheSpot(t *testing.T) {
	r := newRig(t.Context(), t)
	if _, ok := r.wrapped.Parallelizer().(onTheSpot); !ok {
		t.Errorf("a wrapped profile's Parallelizer is a %T", r.wrapped.Parallelizer())
	}
	others := &crowd{}
	var done []int
	do := func(piece int) { done = append(done, piece) }
	p := onTheSpot{others}
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
