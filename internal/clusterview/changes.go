// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"sync"
	"sync/atomic"
)

// maxChanged bounds the namespaces of which it is known when they changed.
const maxChanged = 10_000

// Changes says which namespaces have changed since somebody looked: a tenant who changes something of his own by the second must not have
// the pods of all others looked at again. The zero Changes are of nothing. They are safe for concurrent use.
type Changes struct {
	now atomic.Uint64

	mu sync.Mutex // guards at and floor, and that now moves with them
	at map[string]uint64
	// floor is until when changes were forgotten.
	floor uint64
}

// Note notes that a namespace has changed.
func (c *Changes) Note(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || len(c.at) >= maxChanged {
		c.at, c.floor = make(map[string]uint64), c.now.Load()
	}
	c.at[namespace] = c.now.Add(1)
}

// Now counts the changes.
func (c *Changes) Now() uint64 { return c.now.Load() }

// Since returns the namespaces that have changed since a count, and the count of now. It is false if they are not known: then all may have.
func (c *Changes) Since(before uint64) (namespaces []string, now uint64, known bool) {
	if now = c.now.Load(); now == before {
		return nil, now, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before < c.floor {
		return nil, c.now.Load(), false
	}
	for namespace, at := range c.at {
		if at > before {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces, c.now.Load(), true
}
