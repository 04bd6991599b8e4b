// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// heard are warnings of a pod that wait for its ReplicaSet to be seen: it is not known
// before whose pod it is, and the kubelet may not say it again.
type heard struct {
	of       corev1.ObjectReference
	node     string
	failures []podoutcome.Failure
}

// tellWarning tells the ledger of a failure that is not in the pod's status. The
// caller holds the lock.
func (c *Cache) tellWarning(pod *corev1.Pod, node string, f podoutcome.Failure) {
	// The pod's end is not its node's failure, as in its status.
	if node == "" || pod.DeletionTimestamp != nil {
		return
	}
	id := c.identifier.Identify(pod)
	if !id.Provisional {
		c.fail(pod, revisionOf(id), node, f)
		return
	}
	h := c.heard[pod.UID]
	if h == nil {
		h = &heard{of: corev1.ObjectReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, node: node}
		c.heard[pod.UID] = h
	}
	if !slices.ContainsFunc(h.failures, func(g podoutcome.Failure) bool { return g.Key == f.Key }) {
		h.failures = append(h.failures, f)
	}
}

// tellHeard tells what was heard of a pod before it was known whose it is.
func (c *Cache) tellHeard(pod *corev1.Pod, of failure.Revision) {
	h, ok := c.heard[pod.UID]
	if !ok {
		return
	}
	delete(c.heard, pod.UID)
	for _, f := range h.failures {
		c.fail(pod, of, h.node, f)
	}
}

// unheard forgets what was heard of pods that are gone.
func (c *Cache) unheard() {
	for uid, h := range c.heard {
		if c.find(&h.of) == nil {
			delete(c.heard, uid)
		}
	}
}
