// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"

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
		condition, event = unschedulable(pod), ""
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

// refusedFor waits until the pod is refused and fails the story unless the messages give these reasons.
func (s *story) refusedFor(pod string, reasons ...string) {
	s.Helper()
	condition, event := s.refusal(pod)
	for _, reason := range reasons {
		if !strings.Contains(condition, reason) || !strings.Contains(event, reason) {
			s.Errorf("pod %s is not refused for %q: the condition says %q, the event %q", pod, reason, condition, event)
		}
	}
}

// refusedSoon makes a pod, and makes it anew until it is refused: the scheduler hears of pods and of what keeps them off nodes by different watches.
func (s *story) refusedSoon(name string, template corev1.PodTemplateSpec) {
	s.Helper()
	s.until("pod "+name+" to be refused", func() error {
		s.pod(name, template)
		node := s.tried(name)
		if node == "" {
			return nil
		}
		s.must(s.client.CoreV1().Pods(s.ns).Delete(s.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "deleting pod "+name)
		return fmt.Errorf("it is on node %s", node)
	})
}

// tried waits until a pod has a node, which is returned, or is unschedulable.
func (s *story) tried(name string) (node string) {
	s.Helper()
	s.until("pod "+name+" to be tried", func() error {
		pod, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node = pod.Spec.NodeName; node == "" && unschedulable(pod) == "" {
			return errors.New("it is not")
		}
		return nil
	})
	return node
}
