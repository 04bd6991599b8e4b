// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// hanging is a profile whose bindings take until they are let go.
type hanging struct {
	framework.Framework
	release chan struct{}
}

func (h *hanging) RunBindPlugins(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	<-h.release
	return nil
}

// road is a paced scheduler of two profiles.
type road struct {
	*testing.T
	profiles profile.Map
	paced    nextEntity
	release  chan struct{}
}

func newRoad(t *testing.T) *road {
	release := make(chan struct{})
	profiles := profile.Map{"one": &hanging{release: release}, "two": &hanging{release: release}}
	paced := pace(profiles, func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil }) //nolint:nilnil // it is not looked at
	return &road{t, profiles, paced, release}
}

// bind begins with so many bindings.
func (r *road) bind(bindings int) {
	for i := range bindings {
		go r.profiles[[]string{"one", "two"}[i%2]].RunBindPlugins(r.Context(), nil, nil, "")
	}
	synctest.Wait()
}

// end ends so many, a millisecond apart.
func (r *road) end(bindings int) {
	for range bindings {
		time.Sleep(time.Millisecond)
		r.release <- struct{}{}
	}
	synctest.Wait()
}

// next is how long the next pod has to wait.
func (r *road) next() time.Duration {
	begin := time.Now()
	if _, err := r.paced(klog.Background()); err != nil {
		r.Error(err)
	}
	return time.Since(begin)
}

func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name     string
		bindings int
		end      int // so many bindings, a millisecond apart
		want     time.Duration
	}{
		{"none", 0, 0, 0},
		{"few", most - 1, 0, 0},
		{"many, and one ends", most, 1, time.Millisecond},
		{"more, and one ends", most + 1, 1, atMost},
		{"more, and two end", most + 1, 2, 2 * time.Millisecond},
		{"many, and none ends", most, 0, atMost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t)
				defer close(r.release)
				r.bind(tc.bindings)
				go r.end(tc.end)
				if took := r.next(); took != tc.want {
					t.Errorf("the next pod came after %s, want %s", took, tc.want)
				}
			})
		})
	}
}

// What hangs is waited for once, and others have the road to themselves; until as many have ended, which may be those that hung.
func TestPaceBesideBindingsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(t)
		defer close(r.release)
		want := func(want time.Duration, when string) {
			t.Helper()
			if took := r.next(); took != want {
				t.Errorf("%s: the next pod came after %s, want %s", when, took, want)
			}
		}
		r.bind(most)
		want(atMost, "all hang")
		for range most - 1 {
			r.bind(1)
			want(0, "another")
			r.end(1)
		}
		r.bind(more - 1)
		want(0, "one less than may be under way beside them")
		r.bind(1)
		want(atMost, "as many as may be under way beside them, which hang")
		r.end(most + more - 1)
		r.bind(most + more - 1)
		want(0, "not as many have ended since as hung")
		r.end(1)
		want(atMost, "as many have ended, and what is under way is too many once more")
	})
}

func TestYieldLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody else runs unless we let them
	var ran atomic.Bool
	closed := errors.New("the queue is closed")
	next := yield(func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, closed })
	go func() { ran.Store(true) }()
	// One turn in 61 is the scheduler's own again, by Go's rules of fairness.
	for range 3 {
		if _, err := next(logr.Discard()); !errors.Is(err, closed) {
			t.Errorf("the queue's answer is lost: %v", err)
		}
	}
	if !ran.Load() {
		t.Error("pods are taken up while others wait to run")
	}
}
