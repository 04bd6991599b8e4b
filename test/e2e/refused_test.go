// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// refusal waits until the pod is said to be unschedulable, in its condition and in
// an event, and returns what the two say.
func (s *story) refusal(name string) (condition, event string) {
	s.Helper()
	s.until("pod "+name+" to be refused", func() error {
		pod, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Spec.NodeName != "" {
			s.Fatalf("pod %s is on node %s, and was to be refused", name, pod.Spec.NodeName)
		}
		condition, event = "", ""
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				condition = c.Message
			}
		}
		events, err := s.client.EventsV1().Events(s.ns).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == name && e.Reason == "FailedScheduling" {
				event = e.Note
			}
		}
		if condition == "" || event == "" {
			return fmt.Errorf("the condition says %q, the event %q", condition, event)
		}
		return nil
	})
	return condition, event
}

// tried waits until a pod has a node, which is returned, or is unschedulable.
func (s *story) tried(name string) (node string) {
	s.Helper()
	s.until("pod "+name+" to be tried", func() error {
		pod, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		unschedulable := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		})
		if node = pod.Spec.NodeName; node == "" && !unschedulable {
			return errors.New("it is not")
		}
		return nil
	})
	return node
}

// A placement that cannot be read keeps the pod pending, says which part it is and
// what is allowed, and once it is mended the pod is placed.
func TestMalformedAnnotation(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 20, zone("zone-a"))
	tests := []struct {
		pod, placement string
		quotes         string
		allows         []string
	}{
		{"strategy", "spread=" + zoneLabel + ",sprad=" + rackLabel, "sprad", []string{"spread", "pack"}},
		{"property", "spread=engine.name", "engine.name", []string{"node.labels"}},
		{"weight", "spread=" + zoneLabel + ";weight.zone-a=seventy", "seventy", nil},
		{"option", "spread=" + zoneLabel + ";nodesWithotKey=Exclude", "nodesWithotKey", []string{"nodesWithoutKey"}},
		{"empty", "spread=", "spread=", nil},
	}
	for _, tc := range tests {
		s.pod(tc.pod, s.template(tc.pod, tc.placement))
	}
	for _, tc := range tests {
		condition, event := s.refusal(tc.pod)
		for _, want := range append(tc.allows, tc.quotes, placementAnnotation) {
			if !strings.Contains(condition, want) {
				s.Errorf("the condition of a pod with placement %q does not name %q: %s", tc.placement, want, condition)
			}
			if !strings.Contains(event, want) {
				s.Errorf("the event of a pod with placement %q does not name %q: %s", tc.placement, want, event)
			}
		}
	}
	mend := fmt.Sprintf(`{"metadata":{"annotations":{%q:"spread=%s"}}}`, placementAnnotation, zoneLabel)
	_, err := s.client.CoreV1().Pods(s.ns).Patch(s.ctx, "strategy", types.StrategicMergePatchType, []byte(mend), metav1.PatchOptions{})
	s.must(err, "mending the annotation")
	s.settled("strategy", 1)
}

// Pods that fit nowhere wait and say why; as soon as there is a node they fit on, they are placed.
func TestNoNodeThatFitsThenOneThatDoes(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 4, zone("zone-a"))
	s.deploy("app", 2, "spread="+zoneLabel, asks(8))
	var name string
	s.until("two pods", func() error {
		pods, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) != 2 {
			err = errors.New("not yet")
		}
		if err == nil {
			name = pods.Items[0].Name
		}
		return err
	})
	condition, event := s.refusal(name)
	for _, message := range []string{condition, event} {
		if !strings.Contains(message, "Insufficient cpu") {
			s.Errorf("the message does not say that the cpu is missing: %s", message)
		}
	}
	big := s.nodes(1, 20, zone("zone-b"))[0]
	if on := s.settled("app", 2).OnNodes(); on[big] != 2 {
		s.Errorf("pods are on %v, want two on %s", on, big)
	}
}
