// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

const (
	// timeout is for how long an informer may be without its objects until that is said.
	timeout = 10 * time.Second
	// NoAnswer is the reason of a request that the API server does not answer. Others are those of its answers.
	NoAnswer = "NoAnswer"
	// Reading is the reason of an answer that has begun. Its time counts from the last of it that arrived.
	Reading = "Reading"
)

// Options are what differs between processes. Each function may be nil, for no kind.
type Options struct {
	// Absent reports whether a kind need not be installed. Nothing is said of one that the API server does not have: whoever follows it stops.
	Absent func(schema.GroupVersionResource) bool
	// Optional reports whether the process is ready where the API server does not have a kind, which is named all the same.
	Optional func(schema.GroupVersionResource) bool
	// StandIn reports whether the process goes on without a kind that it has never read: see Tracker.Missing.
	StandIn func(schema.GroupVersionResource) bool
}

// Unfilled is an informer that does not have its objects, or no longer learns of their changes.
type Unfilled struct {
	Resource schema.GroupVersionResource
	Since    time.Time
	// Reason is a word, as in an API status, and Message is what the API server says.
	Reason, Message string
}

// String names the kind, and why.
func (u Unfilled) String() string {
	return fmt.Sprintf("%s of %s: %s", u.Resource.Resource, u.Resource.GroupVersion(), u.Message)
}

// failure is why one thing that is asked is not answered well. The zero value is that it is.
type failure struct {
	since           time.Time
	reason, message string
}

// kind is what is known of an informer. Lists and watches fail apart: with the right to list alone an informer is filled again and again, and
// learns nothing between.
type kind struct {
	list, watch failure
	// right is that of a watch that goes on: see FollowRights.
	right failure
	// namespaced: some informer follows the objects of one namespace.
	namespaced bool
	// filled is when all objects had been read, the last time; zero if never.
	filled time.Time
	// stoodIn: the informer was told that there are no objects.
	stoodIn bool
}

// Tracker knows the informers of a process. It is safe for concurrent use.
type Tracker struct {
	clock   clock.WithTicker
	options Options
	// late has the first kind that was read after the informer was told that there are no objects: see Recovered.
	late chan schema.GroupVersionResource

	mu    sync.Mutex // guards kinds
	kinds map[schema.GroupVersionResource]*kind
}

// New returns a tracker that knows no informers: see Wrap.
func New(c clock.WithTicker, o Options) *Tracker {
	none := func(schema.GroupVersionResource) bool { return false }
	if o.Absent == nil {
		o.Absent = none
	}
	if o.Optional == nil {
		o.Optional = none
	}
	if o.StandIn == nil {
		o.StandIn = none
	}
	return &Tracker{clock: c, options: o, late: make(chan schema.GroupVersionResource, 1), kinds: make(map[schema.GroupVersionResource]*kind)}
}

// Unfilled returns the informers that have not been filled for some seconds, and those that will not be when their watches end, in the order of
// their kinds.
func (t *Tracker) Unfilled() []Unfilled {
	return t.those(func(_ schema.GroupVersionResource, _ *kind, _ *failure, old bool) bool { return old })
}

// unfilledNow returns those of Unfilled that are not filled now, and that the process is not ready without.
func (t *Tracker) unfilledNow() []Unfilled {
	return t.those(func(of schema.GroupVersionResource, k *kind, f *failure, old bool) bool {
		return old && f != &k.right && (f.reason != string(metav1.StatusReasonNotFound) || !t.options.Optional(of))
	})
}

// awaited returns those of unfilledNow but for kinds that the process goes on without, and at once those that were never read and have to be installed.
func (t *Tracker) awaited() []Unfilled {
	return t.those(func(of schema.GroupVersionResource, k *kind, f *failure, old bool) bool {
		return !k.stoodIn && f != &k.right && (old || k.filled.IsZero() && !t.options.Absent(of))
	})
}

// those returns the failures that count, one of each kind, in the order of the kinds. An old one has lasted for some seconds.
func (t *Tracker) those(counts func(of schema.GroupVersionResource, k *kind, f *failure, old bool) bool) (all []Unfilled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for of, k := range t.kinds {
		for _, f := range []*failure{&k.list, &k.watch, &k.right} {
			if !f.since.IsZero() && counts(of, k, f, now.Sub(f.since) >= timeout) {
				all = append(all, Unfilled{of, f.since, f.reason, f.message})
				break
			}
		}
	}
	sortKinds(all)
	return all
}

func sortKinds(all []Unfilled) {
	slices.SortFunc(all, func(a, b Unfilled) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
}

// Fail says that a kind cannot be read, and why. It is for who waits for a kind before there is an informer.
func (t *Tracker) Fail(of schema.GroupVersionResource, reason, message string) {
	t.with(of, func(k *kind) { k.list.note(t.clock.Now(), reason, message) })
}

// Forget says that nobody waits for a kind any more.
func (t *Tracker) Forget(of schema.GroupVersionResource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kinds, of)
}

// with changes what is known of a kind.
func (t *Tracker) with(of schema.GroupVersionResource, change func(*kind)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[of]
	if k == nil {
		k = &kind{}
		t.kinds[of] = k
	}
	change(k)
}

// note says why, and since when if it was well before.
func (f *failure) note(now time.Time, reason, message string) {
	if f.since.IsZero() {
		f.since = now
	}
	f.reason, f.message = reason, message
}

// asked says that all objects are asked for, or those of a namespace.
func (t *Tracker) asked(of schema.GroupVersionResource, namespaced bool) {
	t.with(of, func(k *kind) {
		k.namespaced = k.namespaced || namespaced
		if k.list.since.IsZero() {
			k.list.note(t.clock.Now(), NoAnswer, "no answer")
		}
	})
}

// givenUp says that whoever asked for all objects does not wait for the answer.
func (t *Tracker) givenUp(of schema.GroupVersionResource) {
	t.with(of, func(k *kind) {
		if k.list.reason == NoAnswer {
			k.list = failure{}
		}
	})
}

// reads says that an answer with all objects begins. Moved is for each part of it that arrives, and lost for its end if not all have arrived.
func (t *Tracker) reads(of schema.GroupVersionResource) (moved, lost func()) {
	var before failure
	t.with(of, func(k *kind) {
		before = k.list
		k.list = failure{t.clock.Now(), Reading, "its objects are being read"}
	})
	change := func(to func(failure) failure) {
		t.with(of, func(k *kind) {
			if k.list.reason == Reading {
				k.list = to(k.list)
			}
		})
	}
	moved = func() { change(func(f failure) failure { f.since = t.clock.Now(); return f }) }
	// Answers that end early, one after the other, are no progress.
	lost = func() { change(func(failure) failure { return before }) }
	return moved, lost
}

// read says that all objects were read.
func (t *Tracker) read(of schema.GroupVersionResource) {
	t.with(of, func(k *kind) {
		k.list, k.filled = failure{}, t.clock.Now()
		if k.stoodIn {
			select {
			case t.late <- of:
			default: // one is enough
			}
		}
	})
}

// Recovered waits until a kind is read that the process went on without, and returns an error that names it: the process must end. Who follows the
// informer learns of the objects one after the other, and nothing says when of the last, so that devices that are in use would be given out again.
// At the start of a process all is waited for. Nil is that the context ends.
func (t *Tracker) Recovered(ctx context.Context) error {
	select {
	case of := <-t.late:
		return fmt.Errorf("%s of %s can be read, and could not when this process started: it ends, and waits for all objects when it starts again", of.Resource, of.GroupVersion())
	case <-ctx.Done():
		return nil
	}
}

// Missing says which kinds of a group the process goes on without, nil if none: those that StandIn allows, and that could not be read when it
// started. What needs them must not go by what the informers have, until the process ends: see Recovered. It does not speak of a kind that was read
// in time: what was known then holds.
func (t *Tracker) Missing(group string) (all []Unfilled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, k := range t.kinds { // each try of a pod with a volume asks, and nearly always there is none
		if of.Group != group || !k.stoodIn {
			continue
		}
		if f := k.list; k.filled.IsZero() {
			all = append(all, Unfilled{of, f.since, f.reason, f.message})
		} else {
			all = append(all, Unfilled{of, k.filled, Reading, "it has just been read"})
		}
	}
	if len(all) > 1 {
		sortKinds(all)
	}
	return all
}
