// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

const (
	// firstPause and longestPause bound how often edits wake the pods of a namespace, as kube-scheduler's own
	// back-off bounds how often it tries a pod. A pod that is woken passes that by.
	firstPause   = time.Second
	longestPause = 10 * time.Second
)

// edits are the namespaces whose policies have been edited lately. The first edit wakes pods at once. Those that follow
// are gathered, for longer and longer: somebody who edits a policy all the time must not have his pods tried all the
// time, at the expense of all others.
type edits struct {
	backoff *flowcontrol.Backoff

	mu sync.Mutex // guards gathered, stopped
	// gathered are the namespaces with edits that have woken nobody yet, and when they will.
	gathered map[string]*time.Timer
	stopped  bool
}

func newEdits() *edits {
	return &edits{backoff: flowcontrol.NewBackOff(firstPause, longestPause), gathered: make(map[string]*time.Timer)}
}

// gather notes an edit, and reports whether it is to wake pods now. If it is not, later is called when it is, once for
// all edits until then.
func (e *edits) gather(namespace string, later func()) (now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gathered[namespace] != nil || e.stopped {
		return false
	}
	e.backoff.GC()
	if at := time.Now(); !e.backoff.IsInBackOffSinceUpdate(namespace, at) {
		e.backoff.Next(namespace, at)
		return true
	}
	e.gathered[namespace] = time.AfterFunc(e.backoff.Get(namespace), func() {
		if e.take(namespace) {
			later()
		}
	})
	return false
}

// take ends a gathering. It is false after stop.
func (e *edits) take(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backoff.Next(namespace, time.Now())
	delete(e.gathered, namespace)
	return !e.stopped
}

// stop has nobody woken any more.
func (e *edits) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, timer := range e.gathered {
		timer.Stop()
	}
}

// wake wakes the pods of a namespace after an edit: those for which it makes a difference, and after several all that
// there are, because a pod may have been refused for something in between.
func (p *Policies) wake(namespace string, before []*clusterview.Policy) {
	if p.edits.gather(namespace, func() { p.waiting.Wake(everyPodOf(namespace)) }) {
		p.mu.RLock()
		after := p.byNamespace[namespace]
		p.mu.RUnlock()
		p.waiting.Wake(differently(namespace, before, after))
	}
}

// everyPod is concerned when anything is known for the first time.
func everyPod(*corev1.Pod) bool { return true }

func everyPodOf(namespace string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Namespace == namespace }
}

// differently are the pods of a namespace that another policy governs than before,
// or the same one with another spec.
func differently(namespace string, before, after []*clusterview.Policy) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return pod.Namespace == namespace && clusterview.Governing(before, pod) != clusterview.Governing(after, pod)
	}
}
