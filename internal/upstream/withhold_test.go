// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A pod that must not be decided now is not, and any other is as before.
func TestWithhold(t *testing.T) {
	later := errors.New("later")
	decide := func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		return scheduler.ScheduleResult{SuggestedHost: "node"}, nil
	}
	held := func(pod *corev1.Pod) error {
		if pod.Name == "held" {
			return later
		}
		return nil
	}
	for name, want := range map[string]error{"held": later, "other": nil} {
		info, err := framework.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := withhold(decide, held)(t.Context(), nil, nil, &framework.QueuedPodInfo{PodInfo: info})
		if !errors.Is(err, want) || (result.SuggestedHost == "node") != (want == nil) {
			t.Errorf("the pod %q gets %+v, %v", name, result, err)
		}
		if err != nil && !mayWait(info.Pod, fwk.AsStatus(err), nil) {
			t.Error("the next cycle waits until it is written that the pod waits")
		}
	}
}
