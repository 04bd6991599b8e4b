// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

func conditionAt(t corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.Time{Time: at}}
}

func TestPlaced(t *testing.T) {
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	bound := created.Add(time.Minute)
	for name, tc := range map[string]struct {
		conditions []corev1.PodCondition
		want       time.Time
	}{
		"bound":             {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionTrue, bound)}, bound},
		"refused until now": {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionFalse, bound)}, created},
		"without a time":    {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionTrue, time.Time{})}, created},
		"nothing is said":   {nil, created},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: created}}, Status: corev1.PodStatus{Conditions: tc.conditions}}
		if got := podoutcome.Placed(pod); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A pod may have succeeded and have no containers any more to say when.
func TestSuccessWithoutContainers(t *testing.T) {
	ended := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	if at, ok := podoutcome.Success(pod); !ok || !at.IsZero() {
		t.Errorf("without conditions: %v, %v", at, ok)
	}
	pod.Status.Conditions = []corev1.PodCondition{
		conditionAt(corev1.PodScheduled, corev1.ConditionTrue, ended.Add(-time.Hour)),
		conditionAt(corev1.PodReady, corev1.ConditionFalse, ended),
	}
	if at, ok := podoutcome.Success(pod); !ok || !at.Equal(ended) {
		t.Errorf("with conditions: %v, %v", at, ok)
	}
}
