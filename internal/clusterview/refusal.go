// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import fwk "k8s.io/kube-scheduler/framework"

// Refusal says that a pod fits on no node.
type Refusal struct {
	// Message is the scheduler's own diagnosis: how many nodes were refused for which reasons.
	Message string
	// Plugins are those whose filters refused any.
	Plugins []string
	// Preemption is what it comes to if it is tried, nil if that is not known yet. Then
	// Learn is to be told.
	Preemption *fwk.Status
	Learn      func(preemption *fwk.Status)
}
