// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// decidedPod is a pod over zones of two nodes and one, where one pod runs on a1 and two on b1.
func decidedPod(t *testing.T, args *config.SpreadTreeArgs) (*rig, *corev1.Pod) {
	t.Helper()
	r := newRig(t.Context(), t, args)
	r.join("a1", "zone=a")
	r.join("a2", "zone=a")
	r.join("b1", "zone=b")
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
		"not where no tree was asked": {args(), func(r *rig, _ *framework.CycleState, _ *corev1.Pod) {
			r.feasible()
		}, "a2", ""},
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
