// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var must = placementtest.Must

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
	clock := func() time.Time { return f.now }
	fence := &Fence{clocks: [2]func() time.Time{clock, clock}, lost: func(holder string) { f.lost = holder }}
	f.lock, f.transport = &fencedLock{f.lease, fence}, &fencedTransport{answering{}, fence}
	return f
}

func (f *fenced) wants(t *testing.T, when, method string, open bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://api/binding", strings.NewReader("{}"))
	must(t, err)
	response, err := f.transport.RoundTrip(request)
	if err == nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if open && err != nil || !open && !errors.Is(err, ErrFormerLeader) {
		t.Errorf("%s, %s: %v", when, method, err)
	}
}

func held(by string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 15}
}

// A leader that stood still for as long as the Lease lasts writes nothing when it wakes,
// whether it has looked at the Lease or not, and still reads.
func TestFormerLeaderWritesNothing(t *testing.T) {
	f := newFenced()
	f.wants(t, "before any election", http.MethodPost, true)
	f.lease.write = func() { f.now = f.now.Add(4 * time.Second) } // the Lease counts from when it was asked for
	must(t, f.lock.Create(t.Context(), held("me")))
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
	must(t, f.lock.Update(t.Context(), held("me")))
	f.wants(t, "renewed", http.MethodPost, true)
}

// Who sees another in its place ends, and who gives the Lease back writes nothing more from before another can have it.
func TestLeaderIsReplaced(t *testing.T) {
	f := newFenced()
	f.lease.record = held("other")
	if _, _, err := f.lock.Get(t.Context()); err != nil || f.lost != "" {
		t.Errorf("one that stands by has lost the Lease to %q: %v", f.lost, err)
	}
	for _, record := range []resourcelock.LeaderElectionRecord{held("me"), held("other")} {
		must(t, f.lock.Update(t.Context(), held("me")))
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
	must(t, f.lock.Update(t.Context(), held("me")))
	f.lease.write = func() { f.wants(t, "while it is given back", http.MethodPost, false) }
	must(t, f.lock.Update(t.Context(), held("")))
	f.wants(t, "given back", http.MethodPost, false)
}

// A machine that sleeps stops the clock that is never set, and one that is set back stops the other: either ends the Lease.
func TestEitherClockEndsTheLease(t *testing.T) {
	for i := range 2 {
		f := newFenced()
		must(t, f.lock.Create(t.Context(), held("me")))
		late := f.now.Add(15 * time.Second)
		f.lock.fence.clocks[i] = func() time.Time { return late }
		f.wants(t, fmt.Sprint("over by clock ", i), http.MethodPost, false)
	}
	f := New()
	f.hold(f.now(), held("me"))
	if f.closed() {
		t.Error("the real clocks say that a Lease of this moment is over")
	}
}

// Who finds the Lease given back by another that has led meanwhile does not take it anew, with what it decided before.
func TestLeaderDoesNotLeadTwice(t *testing.T) {
	f := newFenced()
	first := held("me")
	first.LeaderTransitions = 3
	for range 2 {
		must(t, f.lock.Update(t.Context(), first))
	}
	f.wants(t, "renewed", http.MethodPost, true)
	f.lease.record = held("") // it was another's
	second := first
	second.LeaderTransitions = 5
	if err := f.lock.Update(t.Context(), second); !errors.Is(err, ErrFormerLeader) {
		t.Errorf("taken anew: %v", err)
	}
	if f.lease.record.HolderIdentity != "" || f.lost == "" {
		t.Errorf("the Lease is %q's, and was lost to %q", f.lease.record.HolderIdentity, f.lost)
	}
	f.wants(t, "after another", http.MethodPost, false)
}

// One of several that are active ends when its Lease has run out, whether it comes to renew it too late or the renewal takes
// too long: others act by then.
func TestLeaseThatHasRunOutIsFinal(t *testing.T) {
	for name, takes := range map[string]struct{ before, while time.Duration }{
		"in time":                  {14 * time.Second, 500 * time.Millisecond},
		"too late":                 {15 * time.Second, 0},
		"it is renewed for long":   {14 * time.Second, time.Second},
		"the answer comes at last": {time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFenced()
			f.lock.fence.Final()
			must(t, f.lock.Create(t.Context(), held("me")))
			f.now = f.now.Add(takes.before)
			f.lease.write = func() { f.now = f.now.Add(takes.while) }
			err := f.lock.Update(t.Context(), held("me"))
			if inTime := name == "in time"; inTime != (err == nil) || inTime != (f.lost == "") {
				t.Errorf("the renewal: %v, and it was lost to %q", err, f.lost)
			}
			f.wants(t, name, http.MethodPost, name == "in time")
		})
	}
}

// The fence is around every write of a real client, from before plugins are made.
func TestFenceEnclosesTheClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	must(t, err)
	election := &leaderelection.LeaderElectionConfig{Lock: &lease{}}
	f := New()
	made := false
	factory := f.Before(func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) {
		made = true
		return nil, errors.New("made")
	})
	for range 2 { // as for two plugins
		if _, err := factory(t.Context(), nil, handle{client: client}); !made || err.Error() != "made" {
			t.Fatalf("what the factory says is lost: %v", err)
		}
	}
	must(t, f.Guard(election, client))
	writes := func() []error {
		_, pod := client.CoreV1().Pods("a").Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{})
		_, record := client.CoreV1().ConfigMaps("a").Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.UpdateOptions{})
		group := client.StorageV1().StorageClasses().Delete(t.Context(), "a", metav1.DeleteOptions{})
		return []error{pod, record, group}
	}
	for i, err := range writes() {
		if err == nil || errors.Is(err, ErrFormerLeader) {
			t.Errorf("write %d before any election: %v", i, err)
		}
	}
	if err := election.Lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
		t.Fatal(err) // for no time at all
	}
	for i, err := range writes() {
		if !errors.Is(err, ErrFormerLeader) {
			t.Errorf("write %d of a former leader: %v", i, err)
		}
	}
}

// handle has a client and nothing else.
type handle struct {
	fwk.Handle
	client kubernetes.Interface
}

func (h handle) ClientSet() kubernetes.Interface { return h.client }
