// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// reasonBatch is why a pod is not yet in the scheduling queue.
const reasonBatch = "waiting for more pods of the same batch"

// PreEnqueue holds a pod back until its batch is complete (seed "Scheduler design",
// Batching), where the arguments ask for it. Those do not wait:
//   - preassigned pods: nothing is shared with them;
//   - members of a scheduling group: the queue gathers a group already, and holds
//     all of it for one member, so that two batches of a group could release
//     theirs in turn for ever;
//   - pods that were tried before: they have a back-off of their own, which ends
//     at once for a pod that is released from here.
func (pl *SpreadTree) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if !pl.batches.enabled() {
		return nil
	}
	if pod.Spec.SchedulingGroup != nil || tried(pod) {
		return nil
	}
	id := pl.identifier.Identify(pod)
	if id.Preassigned || pl.batches.admit(batch{id: id}.key(), pod) {
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, reasonBatch)
}

// tried reports whether a scheduler has looked for a node for the pod and found none.
func tried(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated
		}
	}
	return false
}
