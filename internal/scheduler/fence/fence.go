// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence keeps a scheduler that has lost its Lease from writing.
package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// ErrFormerLeader is what a write comes to that is fenced off.
var ErrFormerLeader = errors.New("this scheduler is no longer the leader: the Lease has run out or is given up")

// Fence keeps a former leader from writing. One that stood still, with its machine or by
// itself, wakes up in the belief that it leads, and Kubernetes lets it try to renew the
// Lease for the whole renew deadline before it ends. What it binds meanwhile by an old
// view of the cluster the one that leads has not counted on.
//
// A Lease that was renewed may be another's when its duration is over, by our own clock
// from before we asked. After that nothing is written; reading does no harm.
type Fence struct {
	// clocks are the one that is never set and the one on the wall. Either ends the Lease:
	// the first stands still with the machine, as with a virtual one that is put to sleep,
	// and the second may be set back.
	clocks [2]func() time.Time
	// lost is called when another is seen to hold, or to have held, what we held.
	lost func(holder string)

	// final: a Lease that has run out is not renewed, see Final.
	final bool

	enclosing sync.Once
	enclosed  error

	mu          sync.Mutex // guards led, until, transitions
	led         bool       // whether the Lease was ever ours
	until       readings   // and until when
	transitions int        // how often it had changed hands by then
}

// readings are what the clocks show.
type readings [2]time.Time

// New returns a fence that is open until there is an election.
func New() *Fence {
	wall := func() time.Time { return time.Now().Round(0) } // takes the other reading off
	return &Fence{clocks: [2]func() time.Time{time.Now, wall}, lost: func(holder string) {
		klog.ErrorS(nil, "Lost leader election to another replica; exiting", "holder", holder)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}}
}

// Final has a scheduler end whose Lease has run out, although it could still be renewed. It is for those that are one of
// several and act when another's Lease runs out, without taking it. It is for before Guard.
func (f *Fence) Final() { f.final = true }

// Before has the client of a scheduler fenced before a plugin of it is made: plugins may use
// it from the moment on that they are, and what they use must not be altered under them.
func (f *Fence) Before(factory plugins.Factory) plugins.Factory {
	return func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if err := f.enclose(handle.ClientSet()); err != nil {
			return nil, err
		}
		return factory(ctx, args, handle)
	}
}

// enclose puts the fence around a client, once. It is open until there is an election.
func (f *Fence) enclose(client kubernetes.Interface) error {
	f.enclosing.Do(func() {
		c, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
		if !ok || c.Client == nil || c.Client.Transport == nil {
			f.enclosed = fmt.Errorf("the client of the API server is a %T without a transport, so that what a former leader writes could not be stopped; "+
				"this is a fault of the program: run one replica with --leader-elect=false until it is fixed", client.CoreV1().RESTClient())
			return
		}
		// All groups share it. The election has a client of its own, which must be free to
		// give the Lease back, and so have Events, which change nothing.
		c.Client.Transport = &fencedTransport{c.Client.Transport, f}
	})
	return f.enclosed
}

// Guard has the fence follow a scheduler's election, nil if there is none.
func (f *Fence) Guard(election *leaderelection.LeaderElectionConfig, client kubernetes.Interface) error {
	if election == nil {
		return nil
	}
	election.Lock = &fencedLock{election.Lock, f}
	return f.enclose(client) // unless a plugin of ours was made, as nearly always
}

func (f *Fence) now() (r readings) {
	for i, clock := range f.clocks {
		r[i] = clock()
	}
	return r
}

// closed says that the Lease was ours and may be another's.
func (f *Fence) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.led {
		return false
	}
	for i, now := range f.now() {
		if !now.Before(f.until[i]) {
			return true
		}
	}
	return false
}

// hold says that the Lease is ours, from the given time on, for as long as others have
// been told.
func (f *Fence) hold(since readings, record resourcelock.LeaderElectionRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.led, f.transitions = true, record.LeaderTransitions
	for i := range since {
		f.until[i] = since[i].Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
	}
}

// again says that the Lease was ours, and that we would take it anew: that somebody else
// has had it, and has given it back.
func (f *Fence) again(record resourcelock.LeaderElectionRecord) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led && record.LeaderTransitions != f.transitions
}

// giveUp closes the fence, before anybody can take what is given up.
func (f *Fence) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = readings{}
}

// Leads reports whether the Lease is ours.
func (f *Fence) Leads() bool { return f.hasLed() && !f.closed() }

func (f *Fence) hasLed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led
}

// fencedLock is the election's lock, which tells the fence what becomes of it.
type fencedLock struct {
	resourcelock.Interface
	fence *Fence
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
	if l.fence.again(record) {
		l.fence.giveUp()
		l.fence.lost("nobody any more")
		return ErrFormerLeader
	}
	if l.over() {
		return ErrFormerLeader
	}
	asked := l.fence.now()
	err := write()
	if l.over() { // while it was written
		return ErrFormerLeader
	}
	if err == nil {
		l.fence.hold(asked, record)
	}
	return err
}

// over reports that the Lease has run out and must not be renewed, and ends the scheduler.
func (l *fencedLock) over() bool {
	if !l.fence.final || !l.fence.closed() {
		return false
	}
	l.fence.giveUp()
	l.fence.lost("nobody any more")
	return true
}

// fencedTransport sends nothing but questions once the fence is closed. It is below the
// client's rate limit, in which a request may have waited for longer than the Lease.
type fencedTransport struct {
	http.RoundTripper
	fence *Fence
}

func (t *fencedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && t.fence.closed() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, ErrFormerLeader
	}
	return t.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
