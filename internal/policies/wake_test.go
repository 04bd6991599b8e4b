// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

func TestChangesWakeThePodsTheyConcern(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web, pod("ns", "db", "db"), pod("elsewhere", "far", "web"), bound(pod("ns", "bound", "web")))
	r.wakes("db", "far", "web") // known for the first time
	r.cluster.Add(policy("b", "web", 1))
	r.wakes("web")
	r.governs("b", web)
	r.cluster.Modify(policy("b", "web", 2))
	r.wakes("web")
	r.cluster.Add(policy("a", "web", 1)) // comes before b
	r.wakes("web")
	r.governs("a", web)
	r.cluster.Add(policy("c", "web", 1)) // governs nothing, and wakes nobody
	r.cluster.Modify(policy("a", "db", 2))
	r.wakes("db", "web")
	r.governs("b", web)
	r.cluster.Delete(policy("b", "web", 2))
	r.wakes("web")
	r.governs("c", web)
}

// The controller writes the status of each policy; that must wake nobody.
func TestStatusWakesNobody(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web).wakes("web")
	r.cluster.Add(policy("a", "web", 1))
	r.wakes("web")
	reported := policy("a", "web", 1)
	reported.Status.GovernedPods = new(int32(1))
	r.cluster.Modify(reported)
	r.cluster.Modify(policy("a", "web", 2))
	r.wakes("web")
	select {
	case uids := <-r.woken:
		t.Errorf("%q were woken once more", uids)
	default:
	}
}

// waiting are policies that are known, none so far, and a pod that waits; woken is told each time that it is woken.
func waiting(t *testing.T, woken func()) *Policies {
	t.Helper()
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	must(t, pods.Add(pod("ns", "web", "web")))
	p := newPolicies(refusal.NewWaiting(corelisters.NewPodLister(pods), func(map[string]*corev1.Pod) { woken() }))
	p.of = [kinds]*optionalkind.Kind{optionalkind.Known(), optionalkind.Known()}
	return p
}

// Somebody who edits a policy all the time has its pods tried now and then.
func TestEditsWakeNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards woken: each timer is a goroutine
		var woken []time.Duration
		begun := time.Now()
		p := waiting(t, func() {
			mu.Lock()
			defer mu.Unlock()
			woken = append(woken, time.Since(begun))
		})
		edit := func(generation int64) {
			s, err := store(said(policy("a", "web", generation)))
			must(t, err)
			p.seen(s)
		}
		const edits = 600
		for i := range edits {
			edit(int64(i + 1))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		mu.Lock()
		if most := 10; len(woken) > most || len(woken) < 5 {
			t.Errorf("%d edits in a minute have woken the pod at %v, want at most %d times", edits, woken, most)
		}
		mu.Unlock()
		time.Sleep(longestPause + time.Second)
		synctest.Wait()
		mu.Lock()
		last := len(woken)
		mu.Unlock()
		if got, err := p.Governing(pod("ns", "web", "web")); err != nil || got.Generation != edits {
			t.Errorf("it is governed by generation %v, %v", got, err)
		}
		// After a time without edits the next one wakes at once.
		time.Sleep(time.Minute)
		edit(edits + 1)
		mu.Lock()
		if len(woken) != last+1 {
			t.Errorf("an edit after a minute has woken %d times", len(woken)-last)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
	})
}

// A pod that was refused for a policy that came and went between two wakings is woken.
func TestEditsInBetweenWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken atomic.Int32
		p := waiting(t, func() { woken.Add(1) })
		put := func(list ...*clusterview.Policy) {
			p.replace("ns", func([]*clusterview.Policy) []*clusterview.Policy { return list })
		}
		other, bad := clusterview.ReadPolicy(policy("other", "db", 1)), clusterview.ReadPolicy(policy("bad", "web", 1))
		put(other)
		put(other, bad)
		put(other) // the pod may have been refused by now
		time.Sleep(longestPause + time.Second)
		synctest.Wait()
		if n := woken.Load(); n != 1 {
			t.Errorf("it was woken %d times, want once", n)
		}
		put(bad)
		p.edits.stop()
		put(bad, other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := woken.Load(); n != 2 {
			t.Errorf("after the end it was woken %d times more, want once for the edit before", n-1)
		}
	})
}
