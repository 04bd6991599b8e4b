// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

// Nodes tell times by clocks of their own, and one with a bad clock is as likely to be
// bad as any. Their times are held to what the clocks of the control plane and of this
// scheduler allow: nothing happens to a pod before it is placed, nor in the future.

// failedAt is when a pod failed. The ledger bounds a time in the future; recorded again, a
// failure keeps its first time.
func (c *Cache) failedAt(pod *corev1.Pod, f podoutcome.Failure) time.Time {
	if f.At.IsZero() {
		return c.Clock.Now()
	}
	return podoutcome.Latest(f.At, podoutcome.Placed(pod))
}

// succeededAt is when a pod succeeded. One that says nothing of it did when it was seen
// to, or if it was not, some time after it was placed.
func (c *Cache) succeededAt(pod *corev1.Pod, watched bool) (at time.Time, ok bool) {
	at, ok = podoutcome.Success(pod)
	if ok && at.IsZero() && watched {
		return c.Clock.Now(), true
	}
	return podoutcome.Latest(at, podoutcome.Placed(pod)), ok
}

// wellSince is since when a pod does well. A node with a fast clock reports a time in the
// future. Then the time of the first report counts, until the node reports another one.
func (c *Cache) wellSince(pod *corev1.Pod, t *podState) (since time.Time, ok bool) {
	reported, ok := podoutcome.Success(pod)
	if !ok {
		return time.Time{}, false
	}
	if now := c.Clock.Now(); !reported.Equal(t.reported) || t.since.After(now) {
		t.reported, t.since = reported, podoutcome.Latest(reported, podoutcome.Placed(pod))
		if t.since.After(now) {
			t.since = now
		}
	}
	return t.since, true
}

// counts reports whether a failure of some time is one of the node that has the name
// now: there is such a node, it is not younger, and it has not been mended since.
func (c *Cache) counts(name string, at time.Time) bool {
	node, err := c.nodes.Get(name)
	return err == nil && !at.Before(node.CreationTimestamp.Time) && at.After(c.forgiven(name))
}

// forgiven is up to when the failures on a node are forgiven.
func (c *Cache) forgiven(name string) time.Time {
	node, err := c.nodes.Get(name)
	if err != nil {
		return time.Time{}
	}
	return c.forgivenAt.of(c.logger, node, c.Clock.Now())
}

// forgivenNodes are what was made of the annotations of nodes when they were first seen. What
// is in the future then must not forgive what happens until then, and what is wrong with
// one is said once.
type forgivenNodes struct {
	mu     sync.Mutex // guards what follows
	byNode map[string]forgiveness
}

type forgiveness struct {
	text string
	at   time.Time
}

// of is up to when the failures on a node are forgiven.
func (p *forgivenNodes) of(logger klog.Logger, node *corev1.Node, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := node.Annotations[clusterview.FailuresForgivenAnnotation]
	if !ok {
		delete(p.byNode, node.Name)
		return time.Time{}
	}
	if known, ok := p.byNode[node.Name]; ok && known.text == text {
		return known.at
	}
	at, err := clusterview.Forgiven(node, now)
	if err != nil {
		logger.Error(err, "Nothing is forgiven", "node", klog.KObj(node))
	}
	p.byNode[node.Name] = forgiveness{text, at}
	return at
}

// forget forgets a node that is gone.
func (p *forgivenNodes) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byNode, name)
}
