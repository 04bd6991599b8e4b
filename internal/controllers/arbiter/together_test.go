// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shared is a view that many use at once, as an informer's cache. It knows what has changed before anybody is told.
type shared struct {
	mu sync.Mutex
	view
}

func (s *shared) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Get(ctx, key, o, opts...)
}

func (s *shared) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.List(ctx, list, opts...)
}

func (s *shared) change(do func(*view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.view)
}

// Bindings are asked about while pods and nodes come, change and go, and what has not come expires. When all is quiet, what is counted is what is there.
func TestCountsWhileAllHappensAtOnce(t *testing.T) {
	r := newRacks()
	s := &shared{view: r.view}
	r.Limits.Cache = s
	pod := func(random *rand.Rand) *corev1.Pod {
		return podOf(fmt.Sprint("p", random.IntN(12)), 1, some[random.IntN(len(some))], limitedTo(rack+"=3"))
	}
	node := func(random *rand.Rand) *corev1.Node {
		return inRack(fmt.Sprint("n", random.IntN(5)), fmt.Sprint(random.IntN(2)))
	}
	var running sync.WaitGroup
	for i, do := range []func(*rand.Rand){
		func(random *rand.Rand) { // the watch of pods
			p := pod(random)
			switch random.IntN(5) {
			case 0:
				s.change(func(v *view) { delete(v.pods, p.UID) })
				r.RemovePod(p.UID)
				return
			case 1, 2:
				p = onNode(p, node(random).Name)
			case 3:
				ended(p)
			}
			s.change(func(v *view) { v.pods[p.UID] = p })
			r.SetPod(p)
		},
		func(random *rand.Rand) { // that of nodes
			n := node(random)
			if random.IntN(4) == 0 {
				s.change(func(v *view) { delete(v.nodes, n.Name) })
				r.RemoveNode(n.Name)
				return
			}
			s.change(func(v *view) { v.nodes[n.Name] = n })
			r.SetNode(n)
		},
		func(random *rand.Rand) { // time
			if random.IntN(10) == 0 {
				r.clock.Step(unseen / 2)
			}
			r.Expire()
		},
		func(random *rand.Rand) { // the API server, twice
			p := pod(random)
			r.try(t.Context(), p, node(random).Name, r.of(t.Context(), p), random.IntN(3) == 0)
		},
		func(random *rand.Rand) {
			p := pod(random)
			r.try(t.Context(), p, node(random).Name, r.of(t.Context(), p), false)
		},
	} {
		random := rand.New(rand.NewPCG(18, uint64(i)))
		running.Go(func() {
			for range 3000 {
				do(random)
			}
		})
	}
	running.Wait()
	// The watch shows all pods that are there once more. Of those that are not, nothing comes any more.
	for _, p := range s.pods {
		r.SetPod(p)
	}
	r.clock.Step(2 * unseen)
	r.Expire()
	for set, of := range some {
		p := podOf("asks", 1, of, limitedTo(rack+"=3"))
		l, fresh := r.of(t.Context(), p), newCounts(r.on)
		for name := range s.nodes {
			if got, want := r.counts.full(t.Context(), p.UID, l.revision, name), fresh.full(t.Context(), p.UID, l.revision, name); got != want {
				t.Errorf("%s is full for revision %d: %t, and counted anew %t", name, set, got, want)
			}
		}
	}
	for uid := range s.pods {
		delete(s.pods, uid)
		r.RemovePod(uid)
	}
	for _, of := range some {
		r.counts.tidy(identifier.Identify(podOf("asks", 1, of)).Workload)
	}
	if len(r.counts.of) > 0 || len(r.counts.pods) > 0 || r.Unseen() != 0 || r.locks.Len() != 0 {
		t.Errorf("left are %d workloads, %d pods, %d that are to come and %d locks", len(r.counts.of), len(r.counts.pods), r.Unseen(), r.locks.Len())
	}
}
