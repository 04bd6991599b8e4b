// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// schedulePod is what decides where a pod goes.
type schedulePod = func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error)

// withheldError is why a pod is withheld.
type withheldError struct{ error }

func (e withheldError) Unwrap() error { return e.error }

// withhold has pods wait that must not be decided now. It is an error and no refusal: a pod that is refused has others make way for it, and waits for
// an event that its plugins ask for. After an error it is tried again within seconds.
func withhold(schedule schedulePod, why func(*corev1.Pod) error) schedulePod {
	if why == nil {
		return schedule
	}
	return func(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		if err := why(pod.Pod); err != nil {
			return scheduler.ScheduleResult{}, withheldError{err}
		}
		return schedule(ctx, f, state, pod)
	}
}
