// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

const (
	// startTimeout bounds how long the first pod waits for all to be read, and again for what
	// an earlier scheduler knew.
	startTimeout = 5 * time.Second
	// calling is how long a call to the API server may take.
	calling = 10 * time.Second
)

// Activate says that this scheduler places pods from now on: what an earlier one knew
// is read again, and this one writes and speaks. It waits for that at its first call.
func (c *Cache) Activate(ctx context.Context) {
	if c.active.Load() {
		return
	}
	if !c.isReady(ctx) {
		klog.FromContext(ctx).Info("Placing pods without all of what is known of failures: it has not been read yet")
	}
	// Whatever was read while another wrote it is old: until it is read again, now or
	// before it is first written, there may be more in it than is known here.
	c.mu.Lock()
	c.recordRead = false
	c.mu.Unlock()
	reading, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c.readRecord(reading)
	c.active.Store(true)
	c.wake()
}

// isReady waits until all has been read, unless there is nothing to wait for: who
// places pods without having started its informers, as a simulation does, learns
// nothing.
func (c *Cache) isReady(ctx context.Context) bool {
	select {
	case <-c.ready:
		return true
	default:
	}
	if !c.pods.HasSynced() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-c.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// For returns what concerns a pod.
func (c *Cache) For(pod *corev1.Pod) clusterview.Faults {
	id := c.identifier.Identify(pod)
	c.lock()
	defer c.mu.Unlock()
	rule := c.ruleFor(revisionOf(id), pod)
	return &faults{cache: c, rule: placement.Faults{Threshold: rule.Threshold, HalfOpen: c.options.HalfOpen}}
}

// Known reports whether anything is known of a pod's revision. It takes no lock; what fades
// by itself is known until the next look at the ledger.
func (c *Cache) Known(pod *corev1.Pod) bool {
	_, known := c.known.Load(revisionOf(c.identifier.Identify(pod)))
	return known
}

// Identify tells a pod's identity.
func (c *Cache) Identify(pod *corev1.Pod) clusterview.Identity { return c.identifier.Identify(pod) }

// Assume counts a pod on the node that was chosen for it.
func (c *Cache) Assume(pod *corev1.Pod, node string) {
	if !c.concerns(pod) {
		return
	}
	of := revisionOf(c.identifier.Identify(pod))
	c.lock()
	defer c.mu.Unlock()
	a := &podState{of: of, key: cache.NewObjectName(pod.Namespace, pod.Name).String(), node: node, uid: string(pod.UID)}
	c.assumed[pod.UID] = a
	c.ledger.Place(a.of, a.node, a.uid)
}

// Unassume takes back what Assume did, unless the pod has been seen on the node.
func (c *Cache) Unassume(pod *corev1.Pod) {
	c.lock()
	defer c.mu.Unlock()
	c.unassume(pod)
}

func (c *Cache) unassume(pod *corev1.Pod) {
	if a, ok := c.assumed[pod.UID]; ok {
		delete(c.assumed, pod.UID)
		c.ledger.Gone(a.of, a.node, a.uid)
	}
}

// faults are what concerns a pod of whatever revision under one rule.
type faults struct {
	cache *Cache
	rule  placement.Faults
}

// Rule is how records count.
func (f *faults) Rule() placement.Faults { return f.rule }

// Record is that of a node now.
func (f *faults) Record(of clusterview.Identity, node string) placement.Record {
	f.cache.lock()
	defer f.cache.mu.Unlock()
	return f.cache.ledger.Record(revisionOf(of), node)
}

// Changed names the nodes whose records have changed since a version.
func (f *faults) Changed(of clusterview.Identity, since uint64) (nodes []string, anew bool, version uint64) {
	f.cache.lock()
	defer f.cache.mu.Unlock()
	return f.cache.ledger.Changed(revisionOf(of), since)
}
