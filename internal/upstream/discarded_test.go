// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// A pod that is refused while it waits at Permit is taken from the queue before the queue has noted that it is back. What happens in between is seen
// in what the queue logs. That the pod was refused cannot be written down, so that no update of it puts it back.
func TestDiscardedPodIsPutBack(t *testing.T) {
	l := newLoop(t, strings.Replace(loopConfiguration, "{name: PreBinder}", "{name: PreBinder}, {name: Waiter}", 1), func(*Options) {}, heights(0)...)
	w := l.waiter
	l.ctx = klog.NewContext(l.ctx, logr.New(w))
	l.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server writes nothing down")
	})
	l.start()
	l.create(webPod("waits"))
	l.until("the pod to wait", func() bool { return w.of("waits") != nil })
	l.create(webPod("refuses"))
	l.bound("refuses")
	l.bound("waits")
	if !closed(w.discarded) {
		t.Error("the queue has discarded no pod")
	}
}

// waiter has a pod wait at Permit until another one is there, which refuses it. It reads the scheduler's log.
type waiter struct {
	loop   *loop
	handle fwk.Handle

	// discarded is closed when the queue has discarded a pod, and back when the refused pod is in the queue.
	discarded, back         chan struct{}
	onceBack, onceDiscarded sync.Once
}

func (w *waiter) Name() string { return "Waiter" }

func (w *waiter) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	waits := w.of("waits")
	switch {
	case pod.Name == "refuses" && waits != nil:
		waits.Reject(w.Name(), "another one comes first")
		<-w.back
	case pod.Name == "waits" && !closed(w.back):
		// Whatever happens while it is being tried lets it be tried again.
		w.loop.sched.SchedulingQueue.Activate(klog.FromContext(w.loop.ctx), map[string]*corev1.Pod{"waits": pod})
		return fwk.NewStatus(fwk.Wait), time.Hour
	}
	return nil, 0
}

// of returns a pod that waits, nil if it does not.
func (w *waiter) of(name string) (found fwk.WaitingPod) {
	w.handle.IterateOverWaitingPods(func(p fwk.WaitingPod) {
		if p.GetPod().Name == name {
			found = p
		}
	})
	return found
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// What a log writes to.

func (w *waiter) Init(logr.RuntimeInfo)          {}
func (w *waiter) Enabled(level int) bool         { return level <= 3 }
func (w *waiter) WithValues(...any) logr.LogSink { return w }
func (w *waiter) WithName(string) logr.LogSink   { return w }

// Info keeps the queue from noting that a pod is back until that pod was taken.
func (w *waiter) Info(_ int, message string, _ ...any) {
	if message != "Pod moved to an internal scheduling queue" {
		return
	}
	w.onceBack.Do(func() {
		close(w.back)
		select {
		case <-w.discarded:
		case <-time.After(10 * time.Second):
			w.loop.Error("the queue does not discard a pod that it gives out before it has noted that it is back")
		}
	})
}

// Error sees that a pod is discarded.
func (w *waiter) Error(_ error, message string, _ ...any) {
	if message == "Discarding the popped entity" {
		w.onceDiscarded.Do(func() { close(w.discarded) })
	}
}
