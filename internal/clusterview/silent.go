// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Silent returns the taint of a node that does not answer, by which Kubernetes evicts its pods; nil for one that does, or whose pods stay.
// The node lifecycle controller gives it to one node after another, and more slowly or to none where most of a zone does not answer: what
// goes by it does no more than Kubernetes would.
func Silent(node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoExecute {
			return t
		}
	}
	return nil
}

// ReportsWithin is the time within which a node that runs reports: kubelets do so every five minutes.
const ReportsWithin = 10 * time.Minute

// LastReport is when a node has reported last, by its own clock; the zero time for one that never has.
func LastReport(node *corev1.Node) (at time.Time) {
	for i := range node.Status.Conditions {
		if is := &node.Status.Conditions[i]; is.Type == corev1.NodeReady {
			at = is.LastHeartbeatTime.Time
		}
	}
	return at
}
