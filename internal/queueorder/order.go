// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queueorder is what the plugins share that order the scheduling queue: by priority, and then by age, where pods whose node is
// chosen already count as ten seconds older. It knows no plugin.
package queueorder

import (
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// HeadStart is by how much pods that have their node already come before their turn. It is longer than a batch takes,
// so that none takes the room on a node which is the only one for another pod. It is bounded, because anybody may
// pin pods, and whoever keeps them coming would keep all others of the same priority waiting for ever.
const HeadStart = 10 * time.Second

// Since is from when on an entity waits, for its turn.
func Since(entity fwk.QueuedEntityInfo) time.Time {
	if preassigned(entity) {
		return entity.GetTimestamp().Add(-HeadStart)
	}
	return entity.GetTimestamp()
}

// preassigned is false for a group of pods: it is placed as a whole, and has the
// turn that it would have otherwise.
func preassigned(entity fwk.QueuedEntityInfo) bool {
	pod, ok := entity.(interface{ GetPodInfo() fwk.PodInfo })
	return ok && clusterview.Preassigned(pod.GetPodInfo().GetPod())
}
