// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

// recent is a map of what was used most recently. It is not safe for concurrent use.
//
// The least recently used cache of k8s.io/utils was rejected: nothing can be evicted from
// it for its age.
type recent[K comparable, V any] struct {
	// most bounds the values; evicted is called for each that is given up.
	most    int
	evicted func(V)
	values  map[K]*cached[V]
	// clock counts the uses; visited is what it said when evictIdle was called last.
	clock, visited uint64
}

type cached[V any] struct {
	value V
	used  uint64 // of the clock
}

func newRecent[K comparable, V any](most int, evicted func(V)) *recent[K, V] {
	return &recent[K, V]{most: most, evicted: evicted, values: make(map[K]*cached[V])}
}

func (c *recent[K, V]) get(key K) (value V, ok bool) {
	e, ok := c.values[key]
	if !ok {
		return value, false
	}
	c.clock++
	e.used = c.clock
	return e.value, true
}

// put keeps a value in place of another one, and evicts the one that has not been used for
// longest if they are too many.
func (c *recent[K, V]) put(key K, value V) {
	c.evict(key)
	c.clock++
	c.values[key] = &cached[V]{value, c.clock}
	if len(c.values) <= c.most {
		return
	}
	oldest := key
	for k, e := range c.values {
		if e.used < c.values[oldest].used {
			oldest = k
		}
	}
	c.evict(oldest)
}

func (c *recent[K, V]) evict(key K) {
	if e, ok := c.values[key]; ok {
		c.evicted(e.value)
		delete(c.values, key)
	}
}

// evictIdle evicts what has not been used since it was called before, and returns how many
// values are left.
func (c *recent[K, V]) evictIdle() int {
	for k, e := range c.values {
		if e.used <= c.visited {
			c.evict(k)
		}
	}
	c.visited = c.clock
	return len(c.values)
}
