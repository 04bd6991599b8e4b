// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// pendingWarnings are warnings of a pod that wait for its ReplicaSet to be seen: it is not known
// before whose pod it is, and the kubelet may not say it again.
type pendingWarnings struct {
	of       corev1.ObjectReference
	node     string
	failures []podoutcome.Failure
}

// observeWarning records a failure that is not in the pod's status. The
// caller holds the lock.
func (c *Cache) observeWarning(pod *corev1.Pod, node string, f podoutcome.Failure) {
	// The pod's end is not its node's failure, as in its status.
	if node == "" || pod.DeletionTimestamp != nil {
		return
	}
	id := c.identifier.Identify(pod)
	if !id.Provisional {
		c.fail(pod, revisionOf(id), node, f)
		return
	}
	h := c.pending[pod.UID]
	if h == nil {
		h = &pendingWarnings{of: corev1.ObjectReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, node: node}
		c.pending[pod.UID] = h
	}
	if !slices.ContainsFunc(h.failures, func(g podoutcome.Failure) bool { return g.Key == f.Key }) {
		h.failures = append(h.failures, f)
	}
}

// observePending records the warnings of a pod whose owner was not known before.
func (c *Cache) observePending(pod *corev1.Pod, of failure.Revision) {
	h, ok := c.pending[pod.UID]
	if !ok {
		return
	}
	delete(c.pending, pod.UID)
	for _, f := range h.failures {
		c.fail(pod, of, h.node, f)
	}
}

// dropPending forgets the warnings of pods that are gone.
func (c *Cache) dropPending() {
	for uid, h := range c.pending {
		if c.find(&h.of) == nil {
			delete(c.pending, uid)
		}
	}
}
