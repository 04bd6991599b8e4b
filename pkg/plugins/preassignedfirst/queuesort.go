// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preassignedfirst

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Less reports whether a is taken from the queue before b.
func (pl *PreassignedFirst) Less(a, b fwk.QueuedEntityInfo) bool {
	if p, q := a.GetPriority(), b.GetPriority(); p != q {
		return p > q
	}
	if p, q := preassigned(a), preassigned(b); p != q {
		return p
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

// preassigned is false for a group of pods: it is placed as a whole, and has the
// turn that it would have without this plugin.
func preassigned(entity fwk.QueuedEntityInfo) bool {
	pod, ok := entity.(interface{ GetPodInfo() fwk.PodInfo })
	return ok && clusterview.Preassigned(pod.GetPodInfo().GetPod())
}
