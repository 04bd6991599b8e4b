// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package keylock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/internal/keylock"
)

// short is how long something is looked for that must not happen.
const short = 50 * time.Millisecond

// locked is closed when a key has been locked.
func locked(l *keylock.Locks[string], key string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		l.Lock(key)
		close(done)
	}()
	return done
}

func TestVector_VV11_Locker(t *testing.T) {
	var l keylock.Locks[string]
	l.Lock("a")
	second := locked(&l, "a")
	select {
	case <-second:
		t.Fatal("two hold a at once")
	case <-time.After(short):
	}
	<-locked(&l, "b") // which nobody holds
	if n := l.Len(); n != 2 {
		t.Errorf("there are %d entries, want those of a and b", n)
	}
	l.Unlock("a")
	<-second
	l.Unlock("a")
	l.Unlock("b")
	if n := l.Len(); n != 0 {
		t.Errorf("nobody holds or waits, and there are %d entries", n)
	}
}

// Who does not wait gets a key that nobody has, and leaves nothing where it does not get one.
func TestTryLock(t *testing.T) {
	var l keylock.Locks[string]
	if !l.TryLock("a") || l.TryLock("a") || !l.TryLock("b") {
		t.Error("a key that is held was locked, or one was not that nobody holds")
	}
	waits := locked(&l, "a")
	l.Unlock("a")
	<-waits
	if l.TryLock("a") {
		t.Error("two hold a at once")
	}
	l.Unlock("a")
	l.Unlock("b")
	if n := l.Len(); n != 0 || !l.TryLock("a") {
		t.Errorf("nobody holds or waits, and there are %d entries, or a cannot be locked", n)
	}
}

// A thousand locks and unlocks of random keys, by ten at once: each is alone with its key, and nothing is left.
func TestVector_VV11_ThousandLocksLeaveNothing(t *testing.T) {
	var l keylock.Locks[string]
	inside := make([]int, 7) // by key: a second one would be seen by the race detector, and here
	var running sync.WaitGroup
	for i := range 10 {
		random := rand.New(rand.NewPCG(11, uint64(i)))
		running.Go(func() {
			for range 100 {
				k := random.IntN(len(inside))
				key := fmt.Sprint("node-", k)
				l.Lock(key)
				if inside[k]++; inside[k] != 1 {
					t.Errorf("%d hold %s at once", inside[k], key)
				}
				inside[k]--
				l.Unlock(key)
			}
		})
	}
	running.Wait()
	if n := l.Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// Whoever waits comes to hold the key, however often others want it.
func TestNobodyWaitsForEver(t *testing.T) {
	var l keylock.Locks[string]
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l.Lock("a")
				l.Unlock("a") // it was held for nothing but to be in the way
			}
		})
	}
	select {
	case <-locked(&l, "a"):
		l.Unlock("a")
	case <-time.After(10 * time.Second):
		t.Error("one that waits is always passed over")
	}
	close(stop)
	busy.Wait()
}

func TestUnlockOfNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a key was unlocked that nobody holds")
		}
	}()
	new(keylock.Locks[string]).Unlock("a")
}
