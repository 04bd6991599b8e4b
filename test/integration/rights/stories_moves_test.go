// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// components are those of the manifests that have the controller change pods or nodes, each with its story and the flags that it takes.
var components = map[string]struct {
	name  string
	tell  story
	flags func(s *stage) []string
}{
	"move-drained": {"drains", drains, func(*stage) []string { return []string{"--move-drained=All"} }},
	"rebalance": {"rebalances", rebalances, func(s *stage) []string {
		return []string{
			"--rebalance=Enabled", "--rebalance-namespace-selector=kubernetes.io/metadata.name=" + s.name, "--rebalance-quiet=1s", "--rebalance-node-ready=0s", "--rebalance-pod-age=0s",
		}
	}},
	"restart-elsewhere": {"restarts", restarts, func(s *stage) []string {
		return []string{"--restart-elsewhere=Enabled", "--restart-delay=1s", "--failure-record-namespace=" + s.name}
	}},
	"keep-disconnected":     {"keeps", keeps, func(*stage) []string { return []string{"--keep-disconnected"} }},
	"repair-deletion-costs": {"repairs", repairs, func(*stage) []string { return []string{"--repair-deletion-costs=Repair", "--repair-quiet=0s"} }},
	"renew-leases": {"renews", renews, func(s *stage) []string {
		return []string{"--renew-leases", "--renew-namespace-selector=kubernetes.io/metadata.name=" + s.name}
	}},
	"stagger-ends": {"retires", retires, func(s *stage) []string { return []string{"--stagger-ends=" + ofStage + "=" + s.name} }},
	"node-claims":  {"claims", claims, func(*stage) []string { return []string{"--node-claims"} }},
}

// startMoving starts the controller for the Moves and NodeClaims of the stage alone. It would carry out those of others, with rights that they
// may lack.
func (s *stage) startMoving(args ...string) {
	s.Helper()
	s.proxy.only = s.name
	s.startController(args...)
}

// drains: a pod that a disruption budget keeps on a cordoned node is replaced before it is evicted, and one of a StatefulSet is evicted first.
func drains(s *stage) error {
	from, to := s.twoNodes()
	d := s.deploy("drained", 1)
	budgets := cluster.client.PolicyV1().PodDisruptionBudgets(s.name)
	b, err := budgets.Create(s.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "drained"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: d.set.Spec.Selector},
	}, metav1.CreateOptions{})
	s.must(err)
	pod := d.runs(from, s.sharing("drained"))
	first := s.stateful("first").runs(from)
	s.patchNode(from, `{"spec":{"unschedulable":true}}`)
	if err := s.gone(first); err != nil {
		return err
	}
	return d.replaced(pod, to, func() {
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 1}
		_, err := budgets.UpdateStatus(s.Context(), b, metav1.UpdateOptions{})
		s.must(err)
	})
}

// rebalances: of two pods in one zone, one is replaced by another in the other zone. A Move that somebody has made is carried out too.
func rebalances(s *stage) error {
	from, to := s.twoNodes()
	if err := s.stateful("by-hand").movedByHand(from); err != nil {
		return err
	}
	d := s.deploy("uneven", 2)
	placed := func(cost string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"espalier.dev/placed-by": "defaults spread=topology.kubernetes.io/zone", corev1.PodDeletionCost: cost}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{from, to}}}}},
			}}}
		}
	}
	d.runs(from, placed("-1"))
	pod := d.runs(from, placed("-2"))
	return d.replaced(pod, to, func() {})
}

// restarts: a pod that keeps failing on a node that is faulty for it is replaced on another one, and one of a StatefulSet is evicted first.
func restarts(s *stage) error {
	from, to := s.twoNodes()
	d := s.deploy("failing", 1)
	pod := d.runs(from, s.sharing("failing"), func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "failing", "pod-template-hash": "1"}
	})
	first := s.stateful("first").runs(from, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "first", "controller-revision-hash": "1"}
	})
	for _, p := range []*corev1.Pod{pod, first} {
		s.status(p, `{"phase":"Running","conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"containerStatuses":[{"name":"c","image":"i","imageID":"i","restartCount":9,"ready":false,"started":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`)
	}
	made(s, cluster.client.CoreV1().ConfigMaps(s.name).Create, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-failures"},
		Data: map[string]string{"failures.json": fmt.Sprintf(
			`{"version":1,"revisions":[{"workload":"%[1]s/Deployment.apps/failing","revision":"1","nodes":[],"family":"","regarding":{},"marked":[%[2]q]},
			{"workload":"%[1]s/StatefulSet.apps/first","revision":"1","nodes":[],"family":"","regarding":{},"marked":[%[2]q]}]}`, s.name, from)},
	})
	if err := s.gone(first); err != nil {
		return err
	}
	return d.replaced(pod, to, func() {})
}

// keeps: a pod on a node that does not answer is kept and replaced, and goes when the node is back. A Move that somebody has made is carried out too.
func keeps(s *stage) error {
	from, to := s.twoNodes()
	if err := s.stateful("by-hand").movedByHand(from); err != nil {
		return err
	}
	s.object("PlacementPolicy", "kept", map[string]any{"podSelector": map[string]any{}, "disconnect": map[string]any{"replaceAfterSeconds": int64(0), "keep": "Replacement"}})
	d := s.deploy("kept", 1)
	pod := d.runs(from, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		}}
	})
	s.patchNode(from, `{"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"`+now()+`"}]}}`)
	return d.replaced(pod, to, func() {
		s.patchNode(from, `{"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}}`, "status")
		s.patchNode(from, `{"spec":{"taints":null}}`)
		s.status(pod, `{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}`)
	})
}

// repairs: a pod whose number leaves a gap in its zone is given another one.
func repairs(s *stage) error {
	from, _ := s.twoNodes()
	d := s.deploy("gap", 2)
	for _, number := range []string{"1", "3"} {
		d.runs(from, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{
				"espalier.dev/placed-by": "defaults spread=topology.kubernetes.io/zone", corev1.PodDeletionCost: "-" + number, "espalier.dev/deletion-ordinal": number,
			}
		})
	}
	return s.wait("a pod to be given the number 2", func() error {
		pods, err := cluster.client.CoreV1().Pods(s.name).List(s.Context(), metav1.ListOptions{LabelSelector: "app=gap"})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Annotations["espalier.dev/deletion-ordinal"] == "2" {
				return nil
			}
		}
		return errors.New("none is")
	})
}
