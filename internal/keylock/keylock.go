// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keylock has a lock for each key, as Vela's EntityLocker has one for each node: who holds one key keeps nobody waiting
// who wants another.
package keylock

import "sync"

// Locks are locks by key. There is one only while somebody holds it or waits for it, so that they take no room for keys that
// are gone (VV11). The zero value has none.
type Locks[K comparable] struct {
	mu   sync.Mutex // guards held
	held map[K]*lock
}

// lock is that of one key. Users are the one who holds it, and all who wait: the mutex of Locks guards them.
type lock struct {
	sync.Mutex
	users int
}

// Lock waits until nobody else holds the key.
func (l *Locks[K]) Lock(key K) {
	l.mu.Lock()
	of := l.use(key)
	l.mu.Unlock()
	of.Lock()
}

// TryLock locks the key if nobody holds it or waits for it, and reports whether it does. It does not wait.
func (l *Locks[K]) TryLock(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.held[key]; there {
		return false
	}
	l.use(key).Lock()
	return true
}

// use returns the lock of a key for one more user. The caller holds mu.
func (l *Locks[K]) use(key K) *lock {
	of, there := l.held[key]
	if !there {
		if l.held == nil {
			l.held = make(map[K]*lock)
		}
		of = &lock{}
		l.held[key] = of
	}
	of.users++
	return of
}

// Unlock lets the next one have the key. It panics if nobody holds it, as a mutex does.
func (l *Locks[K]) Unlock(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, there := l.held[key]
	if !there {
		panic("keylock: unlock of a key that nobody holds")
	}
	if of.users--; of.users == 0 {
		delete(l.held, key)
	}
	of.Unlock()
}

// Len is how many keys are held or waited for.
func (l *Locks[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
