// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package idlecache has a cache from which values are evicted that are not used: when there are too many, and when nobody has
// used them for some time.
//
// The least recently used cache of k8s.io/utils was rejected: nothing can be evicted from it for its age.
package idlecache

import (
	"iter"
	"maps"
)

// Cache has the values that were used most recently. It is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	most    int
	evicted func(V)
	entries map[K]*entry[V]
	// clock counts the uses; visited is what it said when EvictIdle was called last.
	clock, visited uint64
}

type entry[V any] struct {
	value V
	used  uint64 // of the clock
}

// New returns an empty cache of so many values at most. evicted is called for each that is evicted.
func New[K comparable, V any](most int, evicted func(V)) *Cache[K, V] {
	return &Cache[K, V]{most: most, evicted: evicted, entries: make(map[K]*entry[V])}
}

// Get returns a value, and counts as a use.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	if e, found := c.entries[key]; found {
		c.clock++
		e.used = c.clock
	}
	return c.Peek(key)
}

// Peek returns a value, and is no use.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	e, ok := c.entries[key]
	if !ok {
		return value, false
	}
	return e.value, true
}

// Put keeps a value in place of another one, and evicts the one that has not been used for
// longest if they are too many.
func (c *Cache[K, V]) Put(key K, value V) {
	c.evict(key)
	c.clock++
	c.entries[key] = &entry[V]{value, c.clock}
	if len(c.entries) <= c.most {
		return
	}
	oldest := key
	for k, e := range c.entries {
		if e.used < c.entries[oldest].used {
			oldest = k
		}
	}
	c.evict(oldest)
}

func (c *Cache[K, V]) evict(key K) {
	if e, ok := c.entries[key]; ok {
		c.evicted(e.value)
		delete(c.entries, key)
	}
}

// EvictIdle evicts what has not been used since it was called before, and returns how many
// values are left.
func (c *Cache[K, V]) EvictIdle() int {
	for key, e := range c.entries {
		if e.used <= c.visited {
			c.evict(key)
		}
	}
	c.visited = c.clock
	return c.Len()
}

// Len is the number of values.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

// Values returns the values, in no order that means anything.
func (c *Cache[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := range maps.Values(c.entries) {
			if !yield(e.value) {
				return
			}
		}
	}
}
