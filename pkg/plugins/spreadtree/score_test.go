// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// TestScore is over the nodes a1 and a2 in zone a, b1 in zone b, and c1 without one.
func TestScore(t *testing.T) {
	for _, tc := range []struct {
		name, levels string
		runs         func(r *rig)
		fit          []string
		want         map[string]int64
	}{
		{"fewer pods on the node", "", func(r *rig) { r.runs("a1", "2", 2); r.runs("b1", "2", 1) }, nil,
			map[string]int64{"a2": 100, "c1": 100, "b1": 99, "a1": 98}},
		{"the lowest branch first", "spread=zone", func(r *rig) { r.runs("a1", "2", 1); r.runs("c1", "2", 2) }, nil,
			map[string]int64{"b1": 100, "a2": 99, "a1": 98, "c1": 97}},
		{"only what fits", "spread=zone", func(r *rig) { r.runs("a1", "2", 1) }, []string{"a1", "a2"}, map[string]int64{"a2": 100, "a1": 99}},
		{"a left out node is last", "spread=zone;nodesWithoutKey=Exclude", func(*rig) {}, []string{"b1", "c1"}, map[string]int64{"b1": 100, "c1": 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t.Context(), t, args()).zoned("a1", "a2", "b1")
			r.join("c1")
			tc.runs(r)
			got := r.rank(webPod("p", tc.levels).Obj(), framework.NewCycleState(), tc.fit...)
			plugintest.WantEqual(t, tc.want, got)
		})
	}
}

func TestScoresEndAtZero(t *testing.T) {
	r := newRig(t.Context(), t, args())
	want := make(map[string]int64)
	for i := range 103 {
		name := fmt.Sprintf("n%03d", i)
		r.join(name)
		r.runs(name, "2", i)
		want[name] = max(0, int64(100-i))
	}
	plugintest.WantEqual(t, want, r.rank(webPod("p", "").Obj(), framework.NewCycleState()))
}

func TestRevisions(t *testing.T) {
	for _, tc := range []struct {
		name     string
		count    config.CountRevisions
		old, new map[string]int // pods by node
		want     string
	}{
		{"the newest alone decides", config.CountNewest, map[string]int{"a1": 3}, map[string]int{"b1": 1}, "a1"},
		{"all alike", config.CountAll, map[string]int{"a1": 3}, map[string]int{"b1": 1}, "b1"},
		{"older ones break a tie", config.CountNewest, map[string]int{"a1": 1}, map[string]int{"a1": 1, "b1": 1}, "b1"},
		{"all alike, told from the newest", config.CountAll, map[string]int{"b1": 2}, map[string]int{"a1": 1}, "a1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := args()
			a.CountRevisions = tc.count
			r := newRig(t.Context(), t, a).zoned("a1", "b1")
			for node, n := range tc.old {
				r.runs(node, "1", n)
			}
			for node, n := range tc.new {
				r.runs(node, "2", n)
			}
			if got := r.place(webPod("p", "spread=zone").Obj()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestNodesThatDoNotTakePods: a cordoned node's pods run, those of a node that is not ready do not.
func TestNodesThatDoNotTakePods(t *testing.T) {
	for _, tc := range []struct {
		name string
		mark func(*corev1.Node)
		want string
	}{
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, "b1"},
		{"not ready", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}, "a2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t.Context(), t, args())
			node := labelled("a1", "zone=a").Obj()
			tc.mark(node)
			r.cache.AddNode(r.logger, node)
			r.zoned("a2", "b1")
			r.runs("a1", "2", 2)
			r.runs("b1", "2", 1)
			if got := r.place(webPod("p", "spread=zone").Obj(), "a2", "b1"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPreScoreSkipsWhatIsNotSpread(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1")
	state := framework.NewCycleState()
	for _, pod := range []*corev1.Pod{
		webPod("ds", "spread=zone").OwnerReference("ds", daemonSet).Obj(),
		webPod("pinned", "spread=zone").NodeAffinityIn("metadata.name", []string{"a1"}, st.NodeSelectorTypeMatchFields).Obj(),
	} {
		if s := r.pl.PreScore(r.ctx, state, pod, r.feasible()); !s.IsSkip() {
			t.Errorf("PreScore of %s is %v", pod.Name, s)
		}
		r.assume(pod, "a1")
	}
	if n := r.pl.trees.topologies.Len(); n != 0 {
		t.Errorf("there are %d topologies", n)
	}
}

// The levels that Preferences left for the cycle are taken as they are, and in a profile without it the pod is read.
func TestLevelsOfTheCycleComeFirst(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a", "rack=1")
	r.join("b1", "zone=b", "rack=2")
	r.join("b2", "zone=b", "rack=2")
	r.runs("a1", "2", 1)
	pod := webPod("p", "spread=zone").Obj()
	if got := r.rank(pod, framework.NewCycleState()); got["b1"] != 100 || got["a1"] == 100 {
		t.Errorf("without Preferences the scores are %v", got)
	}
	state := framework.NewCycleState()
	packed, err := clusterview.LevelsOf(webPod("q", "pack=rack").Obj(), nil, nil)
	r.must(err)
	clusterview.WriteLevels(state, packed)
	if got := r.rank(pod, state); got["a1"] != 100 || got["b1"] == 100 {
		t.Errorf("with the levels of Preferences the scores are %v", got)
	}
}

func TestMalformedAnnotationIsAnError(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1")
	pod := webPod("p", "sprd=zone").Obj()
	if s := r.pl.PreScore(r.ctx, framework.NewCycleState(), pod, r.feasible()); s.Code() != fwk.Error || !strings.Contains(s.Message(), `"sprd"`) {
		t.Errorf("PreScore: %v", s)
	}
}

func TestScoreWithoutPreScore(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1")
	_, s := r.pl.Score(r.ctx, framework.NewCycleState(), webPod("p", "").Obj(), r.feasible()[0])
	if s.Code() != fwk.Error || !strings.Contains(s.Message(), string(scoresKey)) {
		t.Errorf("got %v", s)
	}
	if r.pl.ScoreExtensions() != nil {
		t.Error("the scores are stretched")
	}
}

// A node that came since the filters saw the cluster is last.
func TestScoreOfAnUnknownNode(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1")
	state := framework.NewCycleState()
	pod := webPod("p", "").Obj()
	r.rank(pod, state)
	late := framework.NewNodeInfo()
	late.SetNode(labelled("late").Obj())
	if score, s := r.pl.Score(r.ctx, state, pod, late); score != 0 || !s.IsSuccess() {
		t.Errorf("got %d, %v", score, s)
	}
}

// brokenLister is a snapshot that cannot be listed.
type brokenLister struct {
	fwk.SharedLister
	fwk.NodeInfoLister
}

func (l brokenLister) NodeInfos() fwk.NodeInfoLister        { return l }
func (brokenLister) List() ([]fwk.NodeInfo, error)          { return nil, errors.New("no snapshot") }
func (brokenHandle) SnapshotSharedLister() fwk.SharedLister { return brokenLister{} }

type brokenHandle struct{ fwk.Handle }

func TestPreScoreWithoutASnapshot(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.pl.handle = brokenHandle{}
	s := r.pl.PreScore(r.ctx, framework.NewCycleState(), webPod("p", "").Obj(), nil)
	if s.Code() != fwk.Error || !strings.Contains(s.Message(), "listing nodes: no snapshot") {
		t.Errorf("got %v", s)
	}
}

// Two tasks of a global service are confirmed on the first node, and the task that has its choice takes the second.
func TestVector_2_8_G1(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, name := range []string{"n1", "n2"} {
		r.cache.AddNode(r.logger, st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).Obj())
	}
	for i := range 2 {
		name := fmt.Sprint("global-", i)
		r.must(r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name(name).UID(name).OwnerReference("ds", daemonSet).Container("image").Node("n1").Obj()))
	}
	if got := r.place(webPod("p", "").Obj()); got != "n2" {
		t.Errorf("placed on %s", got)
	}
}

// decidedPod is a pod over zones of two nodes and one, where one pod runs on a1 and two on b1.
func decidedPod(t *testing.T, args *config.SpreadTreeArgs) (*rig, *corev1.Pod) {
	t.Helper()
	r := newRig(t.Context(), t, args).zoned("a1", "a2", "b1")
	r.runs("a1", "2", 1)
	r.runs("b1", "2", 2)
	r.runs("b1", "1", 1)
	return r, webPod("p", "spread=zone").Obj()
}

// reserve reserves a node, and returns what is written of the decision.
func (r *rig) reserve(state fwk.CycleState, pod *corev1.Pod, node string) string {
	r.Helper()
	if s := r.pl.Reserve(r.ctx, state, r.assume(pod, node), node); !s.IsSuccess() {
		r.Fatal(s)
	}
	return clusterview.ReadBinding(state)[clusterview.DecisionAnnotation]
}

func TestDecisionIsWritten(t *testing.T) {
	propose := func(r *rig, state *framework.CycleState, pod *corev1.Pod) {
		r.feasible()
		_, _, err := r.pl.Hint(r.ctx, state, pod, true, (&filters{rig: r}).fits)
		r.must(err)
	}
	rank := func(r *rig, state *framework.CycleState, pod *corev1.Pod) { r.rank(pod, state) }
	disabled := args()
	disabled.DecisionRecord = config.DecisionRecordDisabled
	for name, tc := range map[string]struct {
		args   *config.SpreadTreeArgs
		decide func(r *rig, state *framework.CycleState, pod *corev1.Pod)
		node   string
		want   string // "" if nothing is written
	}{
		"of a node that was proposed": {args(), propose, "a2", "fast: zone a=1 before b=2/3; node a2=0 before a1=1"},
		"of one among all that fit": {args(), func(r *rig, state *framework.CycleState, pod *corev1.Pod) {
			r.rank(pod, state, "a1", "b1")
		}, "a1", "full: zone a=1 before b=2/3; node a1=1"},
		"of one that the tree would not have chosen":          {args(), rank, "b1", "full: zone b=2/3 instead of a=1"},
		"not where the arguments say so":                      {disabled, rank, "a2", ""},
		"not for another node than the one that was proposed": {args(), propose, "b1", ""},
		"not where no tree was asked":                         {args(), func(r *rig, _ *framework.CycleState, _ *corev1.Pod) { r.feasible() }, "a2", ""},
		"not where the nodes have changed since": {args(), func(r *rig, state *framework.CycleState, pod *corev1.Pod) {
			r.rank(pod, state)
			r.join("c1", "zone=c")
			r.rank(webPod("q", "spread=zone").Obj(), framework.NewCycleState())
		}, "a2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, pod := decidedPod(t, tc.args)
			state := framework.NewCycleState()
			tc.decide(r, state, pod)
			if got := r.reserve(state, pod, tc.node); got != tc.want {
				t.Errorf("it is written %q, want %q", got, tc.want)
			}
		})
	}
}

// The pods of a group are all decided before they are bound, and each is reserved once more then.
func TestDecisionOfAGroupIsThatOfTheFirstReserve(t *testing.T) {
	r, pod := decidedPod(t, args())
	state := framework.NewCycleState()
	r.rank(pod, state)
	first := r.reserve(state, pod, "a2")
	second := webPod("q", "spread=zone").Obj()
	r.rank(second, framework.NewCycleState())
	if s := r.pl.Reserve(r.ctx, state, pod, "a2"); !s.IsSuccess() {
		t.Fatal(s)
	}
	if again := clusterview.ReadBinding(state)[clusterview.DecisionAnnotation]; first == "" || again != first {
		t.Errorf("it is written %q and then %q", first, again)
	}
}
