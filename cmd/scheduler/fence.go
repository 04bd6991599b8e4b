// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
)

// errFormerLeader is what a write comes to that is fenced off.
var errFormerLeader = errors.New("this scheduler is no longer the leader: the Lease has run out or is given up")

// fence keeps a former leader from writing. One that stood still, with its machine or by
// itself, wakes up in the belief that it leads, and Kubernetes lets it try to renew the
// Lease for the whole renew deadline before it ends. What it binds meanwhile by an old
// view of the cluster the one that leads has not counted on.
//
// A Lease that was renewed may be another's when its duration is over, by our own clock
// from before we asked. After that nothing is written; reading does no harm.
type fence struct {
	duration time.Duration
	now      func() time.Time
	// lost is called when another is seen to hold what we held.
	lost func(holder string)

	mu    sync.Mutex // guards led, until
	led   bool       // whether the Lease was ever ours
	until time.Time  // and until when
}

// fenceOff puts a fence around a scheduler that is elected.
func fenceOff(config *schedulerserverconfig.CompletedConfig) error {
	election := config.LeaderElection
	if election == nil {
		return nil
	}
	client, ok := config.Client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || client.Client == nil || client.Client.Transport == nil {
		return fmt.Errorf("the client of the API server is a %T without a transport: what a former leader writes could not be stopped", config.Client.CoreV1().RESTClient())
	}
	f := &fence{duration: election.LeaseDuration, now: time.Now, lost: func(holder string) {
		klog.ErrorS(nil, "Another scheduler leads, ending at once", "lock", election.Lock.Describe(), "holder", holder)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}}
	// The election has a client of its own, which must be free to give the Lease back.
	client.Client.Transport = &fencedTransport{client.Client.Transport, f}
	election.Lock = &fencedLock{election.Lock, f}
	return nil
}

// closed says that the Lease was ours and may be another's.
func (f *fence) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led && !f.now().Before(f.until)
}

// hold says that the Lease is ours, from the given time on.
func (f *fence) hold(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.led, f.until = true, since.Add(f.duration)
}

// giveUp closes the fence, before anybody can take what is given up.
func (f *fence) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
}

func (f *fence) hasLed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led
}

// fencedLock is the election's lock, which tells the fence what becomes of it.
type fencedLock struct {
	resourcelock.Interface
	fence *fence
}

// Get is asked by a leader when it could not simply renew.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.fence.hasLed() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.fence.giveUp()
		l.fence.lost(record.HolderIdentity)
	}
	return record, raw, err
}

func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *fencedLock) write(record resourcelock.LeaderElectionRecord, write func() error) error {
	if record.HolderIdentity != l.Identity() {
		l.fence.giveUp()
		return write()
	}
	asked := l.fence.now()
	err := write()
	if err == nil {
		l.fence.hold(asked)
	}
	return err
}

// fencedTransport sends nothing but questions once the fence is closed. It is below the
// client's rate limit, in which a request may have waited for longer than the Lease.
type fencedTransport struct {
	http.RoundTripper
	fence *fence
}

func (t *fencedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && t.fence.closed() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFormerLeader
	}
	return t.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
