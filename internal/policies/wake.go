// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
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

// maxGathered bounds the edits of a namespace that are remembered one by one.
const maxGathered = 16

// edits are the namespaces whose policies have been edited lately, and everywhere for those of the cluster. The first edit wakes pods at once. Those that follow
// are gathered, for longer and longer: somebody who edits a policy all the time must not have his pods tried all the
// time, at the expense of all others.
type edits struct {
	backoff *flowcontrol.Backoff

	mu sync.Mutex // guards gathered, stopped
	// gathered are the edits of namespaces that have woken nobody yet.
	gathered map[string]*gathering
	stopped  bool
}

// gathering is the policies of a namespace before each of some edits, and when they wake pods.
type gathering struct {
	befores [][]*clusterview.Policy
	timer   *time.Timer
}

func newEdits() *edits {
	return &edits{backoff: flowcontrol.NewBackOff(firstPause, longestPause), gathered: make(map[string]*gathering)}
}

// gather notes an edit, and reports whether it is to wake pods now. If it is not, later is called when it is, with what was
// before each of the edits until then.
func (e *edits) gather(namespace string, before []*clusterview.Policy, later func(befores [][]*clusterview.Policy)) (now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.gathered[namespace]
	if e.stopped {
		return false
	}
	if g == nil {
		e.backoff.GC()
		if at := time.Now(); !e.backoff.IsInBackOffSinceUpdate(namespace, at) {
			e.backoff.Next(namespace, at)
			return true
		}
		g = &gathering{timer: time.AfterFunc(e.backoff.Get(namespace), func() {
			if befores, wanted := e.take(namespace); wanted {
				later(befores)
			}
		})}
		e.gathered[namespace] = g
	}
	if len(g.befores) <= maxGathered {
		g.befores = append(g.befores, before)
	}
	return false
}

// take ends a gathering. It is false after stop.
func (e *edits) take(namespace string) (befores [][]*clusterview.Policy, wanted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backoff.Next(namespace, time.Now())
	befores = e.gathered[namespace].befores
	delete(e.gathered, namespace)
	return befores, !e.stopped
}

// stop has nobody woken any more.
func (e *edits) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, g := range e.gathered {
		g.timer.Stop()
	}
}

// wake wakes the pods for which an edit makes a difference: also one that was taken back since, because a pod
// may have been refused in between. Before is what before returns for the namespace, or for everywhere.
func (p *Policies) wake(namespace string, before []*clusterview.Policy) {
	wake := func(befores [][]*clusterview.Policy) {
		had := befores
		ofNamespaces := make(map[string][][]*clusterview.Policy)
		p.waiting.Wake(func(pod *corev1.Pod) bool {
			switch {
			case namespace != everywhere && pod.Namespace != namespace:
				return false
			case len(befores) > maxGathered:
				return true
			case namespace == everywhere:
				var ok bool
				if had, ok = ofNamespaces[pod.Namespace]; !ok {
					had = p.mergeAll(befores, pod.Namespace)
					ofNamespaces[pod.Namespace] = had
				}
			}
			now, err := p.Governing(pod)
			return err == nil && (len(had) < len(befores) || slices.ContainsFunc(had, func(before []*clusterview.Policy) bool {
				return clusterview.Governing(before, pod) != now
			}))
		})
	}
	if p.edits.gather(namespace, before, wake) {
		wake([][]*clusterview.Policy{before})
	}
}

// mergeAll returns what had a say in a namespace with each of some lists of policies of the cluster. They are fewer where that is not known.
func (p *Policies) mergeAll(clusters [][]*clusterview.Policy, namespace string) (had [][]*clusterview.Policy) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, cluster := range clusters {
		if list, err := p.merge(cluster, namespace); err == nil {
			had = append(had, list)
		}
	}
	return had
}

// everyPod is concerned when anything is known for the first time.
func everyPod(*corev1.Pod) bool { return true }
