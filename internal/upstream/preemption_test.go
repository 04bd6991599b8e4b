// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"
)

// order is a Hinter with an order of nodes, or without.
type order struct {
	Hinter
	by  map[string]int64
	err error
}

func (o order) Order(context.Context, fwk.CycleState, *corev1.Pod, []string) (map[string]int64, error) {
	return o.by, o.err
}

// choice is a node with its victims.
type choice struct {
	node    string
	victims *extenderv1.Victims
}

func (c choice) Name() string                 { return c.node }
func (c choice) Victims() *extenderv1.Victims { return c.victims }
func (c choice) NumPodGroupDisruptions() int  { return 0 }

// merit is how a choice does by the in-tree criteria.
func (c choice) merit() string {
	sum := int64(0)
	for _, p := range c.victims.Pods {
		sum += int64(*p.Spec.Priority)
	}
	return fmt.Sprintf("%d violations, %d victims of at most %d and %d in all", c.victims.NumPDBViolations, len(c.victims.Pods), *c.victims.Pods[0].Spec.Priority, sum)
}

// choose is what an evaluator chooses for a pod.
func choose(of preemption.Interface, candidates []preemption.Candidate) choice {
	ctx := context.WithValue(context.Background(), preemptorKey{}, preemptor{framework.NewCycleState(), st.MakePod().Obj()})
	c := (&preemption.Evaluator{Interface: of}).SelectCandidate(ctx, candidates)
	return choice{c.Name(), c.Victims()}
}

// What the in-tree criteria tell apart they tell apart here, whatever the order is; what they find equal is told apart
// by the order.
func TestPropertyPreemption(t *testing.T) {
	inTree := &defaultpreemption.DefaultPreemption{}
	rapid.Check(t, func(t *rapid.T) {
		var candidates []preemption.Candidate
		by := make(map[string]int64)
		for i := range rapid.IntRange(2, 6).Draw(t, "nodes") {
			c := choice{fmt.Sprint("n", i), &extenderv1.Victims{NumPDBViolations: rapid.Int64Range(0, 1).Draw(t, "violations")}}
			for range rapid.IntRange(1, 3).Draw(t, "victims") {
				started := metav1.NewTime(time.Unix(rapid.Int64Range(0, 3).Draw(t, "started"), 0))
				c.victims.Pods = append(c.victims.Pods, st.MakePod().Priority(rapid.Int32Range(-2, 2).Draw(t, "priority")).StartTime(started).Obj())
			}
			slices.SortFunc(c.victims.Pods, func(a, b *corev1.Pod) int { return int(*b.Spec.Priority - *a.Spec.Priority) })
			candidates = append(candidates, c)
			by[c.node] = rapid.Int64Range(-2, 0).Draw(t, "order")
		}
		stock, ours := choose(inTree, candidates), choose(&treePreemption{inTree, order{by: by}}, candidates)
		if d := cmp.Diff(stock.merit(), ours.merit()); d != "" {
			t.Fatalf("in-tree -, ours +:\n%s", d)
		}
		for _, c := range candidates {
			if c := c.(choice); c.merit() == ours.merit() && by[c.node] > by[ours.node] {
				t.Fatalf("it chose %s, and %s is before it in the order %v", ours.node, c.node, by)
			}
		}
	})
}

// An order that cannot be had leaves the in-tree choice.
func TestPreemptionWithoutAnOrder(t *testing.T) {
	young, old := metav1.NewTime(time.Unix(2, 0)), metav1.NewTime(time.Unix(1, 0))
	victims := func(started metav1.Time) *extenderv1.Victims {
		return &extenderv1.Victims{Pods: []*corev1.Pod{st.MakePod().Priority(1).StartTime(started).Obj()}}
	}
	candidates := []preemption.Candidate{choice{"old", victims(old)}, choice{"young", victims(young)}}
	for name, tc := range map[string]struct {
		order order
		want  string
	}{
		"an order":     {order{by: map[string]int64{"old": 0, "young": -1}}, "old"},
		"no order":     {order{by: map[string]int64{}}, "young"},
		"a broken one": {order{by: map[string]int64{"old": 0, "young": -1}, err: errors.New("no snapshot")}, "young"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(&treePreemption{&defaultpreemption.DefaultPreemption{}, tc.order}, candidates); got.node != tc.want {
				t.Errorf("it chose %s, want %s", got.node, tc.want)
			}
		})
	}
}
