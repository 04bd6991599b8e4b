// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is a Lease in memory; fails makes its writes fail.
type lease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	fails  error
	write  func() // what happens while it is written
}

func (l *lease) Identity() string { return "me" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, nil
}

func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.write != nil {
		l.write()
	}
	if l.fails == nil {
		l.record = r
	}
	return l.fails
}

type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

// fenced is a fence of 15 seconds around a lease and an API server, with a clock that is set by hand.
type fenced struct {
	lease     *lease
	lock      *fencedLock
	transport *fencedTransport
	now       time.Time
	lost      string
}

func newFenced() *fenced {
	f := &fenced{lease: &lease{}, now: time.Unix(1000, 0)}
	fence := &fence{duration: 15 * time.Second, now: func() time.Time { return f.now }, lost: func(holder string) { f.lost = holder }}
	f.lock, f.transport = &fencedLock{f.lease, fence}, &fencedTransport{answering{}, fence}
	return f
}

func (f *fenced) wants(t *testing.T, when, method string, open bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://api/binding", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.transport.RoundTrip(request)
	if err == nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if open && err != nil || !open && !errors.Is(err, errFormerLeader) {
		t.Errorf("%s, %s: %v", when, method, err)
	}
}

func held(by string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by}
}

// A leader that stood still for as long as the Lease lasts writes nothing when it wakes,
// whether it has looked at the Lease or not, and still reads.
func TestFormerLeaderWritesNothing(t *testing.T) {
	f := newFenced()
	f.wants(t, "before any election", http.MethodPost, true)
	f.lease.write = func() { f.now = f.now.Add(4 * time.Second) } // the Lease counts from when it was asked for
	if err := f.lock.Create(t.Context(), held("me")); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(11*time.Second - time.Nanosecond)
	f.wants(t, "at the last moment", http.MethodPost, true)
	f.now = f.now.Add(time.Nanosecond)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		f.wants(t, "when it is over", method, false)
	}
	f.wants(t, "when it is over", http.MethodGet, true)

	f.lease.write, f.lease.fails = nil, errors.New("conflict")
	if err := f.lock.Update(t.Context(), held("me")); err == nil {
		t.Error("an update that fails ended well")
	}
	f.wants(t, "not renewed", http.MethodPost, false)
	f.lease.fails = nil
	if err := f.lock.Update(t.Context(), held("me")); err != nil {
		t.Fatal(err)
	}
	f.wants(t, "renewed", http.MethodPost, true)
}

// Who sees another in its place ends, and who gives the Lease back writes nothing more
// from before another can have it.
func TestLeaderIsReplaced(t *testing.T) {
	f := newFenced()
	f.lease.record = held("other")
	if _, _, err := f.lock.Get(t.Context()); err != nil || f.lost != "" {
		t.Errorf("one that stands by has lost the Lease to %q: %v", f.lost, err)
	}
	for _, record := range []resourcelock.LeaderElectionRecord{held("me"), held("other")} {
		if err := f.lock.Update(t.Context(), held("me")); err != nil {
			t.Fatal(err)
		}
		f.lease.record = record
		if _, _, err := f.lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.wants(t, "held by "+record.HolderIdentity, http.MethodPost, record.HolderIdentity == "me")
	}
	if f.lost != "other" {
		t.Errorf("it has lost the Lease to %q", f.lost)
	}
	f = newFenced()
	if err := f.lock.Update(t.Context(), held("me")); err != nil {
		t.Fatal(err)
	}
	f.lease.write = func() { f.wants(t, "while it is given back", http.MethodPost, false) }
	if err := f.lock.Update(t.Context(), held("")); err != nil {
		t.Fatal(err)
	}
	f.wants(t, "given back", http.MethodPost, false)
}
