// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"strings"

	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// Whoever may make pods can make workloads that fail, a new one each second, each of
// which is known for a while. So many are, and no more.
const (
	// maxRevisions bounds the revisions that are followed.
	maxRevisions = 5000
	// maxPerNamespace bounds those of one namespace.
	maxPerNamespace = 500
)

// bound forgets revisions as long as there are too many: of the namespace that has most,
// so that others keep theirs, the one that has not failed for longest. It is not asked
// where a revision comes to be known: that has all pods of its family told, which may
// have failed for one that was forgotten just now. The caller holds the lock.
func (c *Cache) bound() {
	for {
		namespace, most := c.largest()
		if most <= maxPerNamespace && len(c.tracked) <= maxRevisions {
			return
		}
		of := c.oldest(namespace)
		klog.V(2).InfoS("Forgetting where a workload failed: too many have", "workload", of.Workload, "revision", of.Revision,
			"ofNamespace", most, "ofAll", len(c.tracked))
		c.ledger.Forget(of)
		delete(c.tracked, of)
		c.wake()
	}
}

// largest is the namespace with most revisions, the first by name of several.
func (c *Cache) largest() (namespace string, most int) {
	sizes := make(map[string]int)
	for of := range c.tracked {
		sizes[namespaceOf(of)]++
	}
	for name, size := range sizes {
		if size > most || size == most && strings.Compare(name, namespace) < 0 {
			namespace, most = name, size
		}
	}
	return namespace, most
}

// oldest is the revision of a namespace that has not failed for longest.
func (c *Cache) oldest(namespace string) (oldest failure.Revision) {
	var of *tracked
	for r, t := range c.tracked {
		if namespaceOf(r) != namespace {
			continue
		}
		if of == nil || t.failed.Before(of.failed) || t.failed.Equal(of.failed) && r.Compare(oldest) < 0 {
			oldest, of = r, t
		}
	}
	return oldest
}
