// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// A pod that waits for its budget stays if that for which it was to be evicted first is over until it may go.
func TestNeedlessEvictions(t *testing.T) {
	const drain, restart = placementv1alpha1.MoveDrain, placementv1alpha1.MoveRestart
	taints := func(key string, effect corev1.TaintEffect) func(*corev1.Node, *corev1.Pod) {
		return func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	readies := func(_ *corev1.Node, p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }
	candidate := taints("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule)
	for name, tc := range map[string]struct {
		reason placementv1alpha1.MoveReason
		change func(*corev1.Node, *corev1.Pod)
		stays  string
	}{
		"nothing has changed":           {drain, func(*corev1.Node, *corev1.Pod) {}, ""},
		"it fails still":                {restart, func(*corev1.Node, *corev1.Pod) {}, ""},
		"it is ready, and drained":      {drain, readies, ""},
		"it is ready again":             {restart, readies, "the pod is ready again"},
		"its node is not drained":       {drain, func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Unschedulable = false }, "nobody is about to remove its node any more"},
		"its node may be removed later": {drain, func(n *corev1.Node, p *corev1.Pod) { n.Spec.Unschedulable = false; candidate(n, p) }, "its node would take it again"},
		"its node never was drained":    {restart, func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Unschedulable = false }, ""},
		"its node does not answer":      {drain, taints(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), "its node does not answer"},
		"nor do most of its zone":       {restart, taints(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), "its node does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateful(t)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			s.must(s.api.Create(t.Context(), node))
			pods, _ := s.pods()
			s.unready(&pods[0])
			s.allows = false
			m := s.moveFor(&pods[0], tc.reason)
			if is := s.look(m, 2); is.Status.Phase != placementv1alpha1.MoveEvicting {
				t.Fatalf("it is %s: %s", is.Status.Phase, is.Status.Message)
			}
			tc.change(node, &pods[0])
			s.must(s.api.Update(t.Context(), node))
			s.must(s.api.Status().Update(t.Context(), &pods[0]))
			s.allows = true
			is := s.look(m, 3)
			left, _ := s.pods()
			if (len(left) == replicas) != (tc.stays != "") || tc.stays != "" && (is.Status.Phase != placementv1alpha1.MoveFailed || is.Status.Message != tc.stays) {
				t.Errorf("there are %d pods, and the Move is %s: %s", len(left), is.Status.Phase, is.Status.Message)
			}
		})
	}
}
