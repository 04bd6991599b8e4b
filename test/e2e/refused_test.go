// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
