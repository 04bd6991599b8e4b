// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// Nodes tell times by clocks of their own, and one with a bad clock is as likely to be
// bad as any. Their times are held to what the clocks of the control plane and of this
// scheduler allow: nothing happens to a pod before it is placed, nor in the future.

// failedAt is when a pod failed. The ledger sees to the future: told again, a failure is
// as it was told first.
func (c *Cache) failedAt(pod *corev1.Pod, f clusterview.Failure) time.Time {
	if f.At.IsZero() {
		return c.Clock.Now()
	}
	return latest(f.At, clusterview.Placed(pod))
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
