// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/internal/keylock"
	"github.com/espalier-scheduler/espalier/internal/upstream/nodefit"
	"github.com/espalier-scheduler/espalier/pkg/placement/reservation"
)

const (
	// catchUp is how long a binding that would be refused waits for news of its node, once: what makes room for it may have
	// happened, and the watch has not said so yet. A webhook has a second in all.
	catchUp = 100 * time.Millisecond
	// unseen is how long a pod that was admitted counts on its node though nobody has seen it there. Nobody says whether a binding was made
	// that was admitted.
	unseen = 10 * time.Second
)

// Ledger is what takes room on each node: the pods that are there, and those that were admitted to it and have not been seen yet. It is
// safe for concurrent use. What concerns one node waits for nobody who is at another.
type Ledger struct {
	clock clock.Clock
	// locks are by node, and guard what is in nodes; and by workload, taken before those, for limits over more than a node.
	locks keylock.Locks[string]

	mu    sync.Mutex // guards what follows; under it nobody waits
	nodes map[string]*node
	// seen are the nodes of pods that are known to be there.
	seen     map[types.UID]string
	reserved reservation.Book

	// counts are for limits over more than a node.
	counts *counts
}

// node is one node. The lock of its name guards it.
type node struct {
	*nodefit.Node
	// is what the node says of itself, nil if it is not known.
	is *corev1.Node
	// changed is closed when there is news of the node, nil if nobody waits for any.
	changed chan struct{}
}

// NewLedger returns one that knows of nothing.
func NewLedger(clock clock.Clock) *Ledger {
	l := &Ledger{clock: clock, nodes: make(map[string]*node), seen: make(map[types.UID]string)}
	l.counts = newCounts(l.on)
	return l
}

// at does something with a node, alone, and tells those who wait for news of it, if it is any.
func (l *Ledger) at(name string, do func(*node) (news bool)) {
	l.locks.Lock(name)
	defer l.locks.Unlock(name)
	l.mu.Lock()
	n, known := l.nodes[name]
	if !known {
		n = &node{Node: nodefit.New()}
		l.nodes[name] = n
	}
	l.mu.Unlock()
	if do(n) && n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
	if n.Empty() && n.changed == nil {
		l.mu.Lock()
		delete(l.nodes, name)
		l.mu.Unlock()
	}
}

// SetNode says how a node is.
func (l *Ledger) SetNode(is *corev1.Node) {
	l.at(is.Name, func(n *node) bool {
		if n.is != nil {
			l.counts.relabelled(n.is, is)
		} else {
			l.counts.moved(n.Pods()...) // they were known before their node
		}
		n.is = is
		n.Set(is)
		return true
	})
}

// RemoveNode says that there is no such node any more. Its pods go on their own.
func (l *Ledger) RemoveNode(name string) {
	l.at(name, func(n *node) bool {
		n.is = nil
		n.Set(nil)
		l.counts.moved(n.Pods()...)
		return true
	})
}

// SetPod says how a pod is.
func (l *Ledger) SetPod(pod *corev1.Pod) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		l.RemovePod(pod.UID) // a kubelet does not count it any more
		return
	case pod.Spec.NodeName == "":
		l.counts.set(pod) // its labels may have changed, and it may have been admitted
		return
	}
	l.mu.Lock()
	l.seen[pod.UID] = pod.Spec.NodeName
	released := l.reserved.Release(string(pod.UID))
	l.mu.Unlock()
	for _, name := range released {
		if name != pod.Spec.NodeName {
			l.at(name, func(n *node) bool { return n.Remove(pod.UID) })
		}
	}
	l.at(pod.Spec.NodeName, func(n *node) bool {
		n.Add(pod)
		l.counts.set(pod) // not before: who tells of the node asks whether it has pods
		return true
	})
}

// RemovePod says that a pod is gone, or has ended.
func (l *Ledger) RemovePod(uid types.UID) {
	l.mu.Lock()
	released := l.reserved.Release(string(uid))
	if name, was := l.seen[uid]; was {
		delete(l.seen, uid)
		released = append(released, name)
	}
	l.mu.Unlock()
	l.counts.moved(uid)
	for _, name := range released {
		l.at(name, func(n *node) bool { return n.Remove(uid) })
	}
}

// Expire takes the pods off that were admitted and have not come. It is for now and then.
func (l *Ledger) Expire() {
	l.mu.Lock()
	over := l.reserved.Expire(l.clock.Now())
	l.mu.Unlock()
	l.giveBack(over)
}

// giveBack has pods take no room any more where they did not come, unless they have been admitted there once more by now.
func (l *Ledger) giveBack(over []reservation.Reservation) {
	for _, r := range over {
		uid := types.UID(r.Pod)
		l.counts.moved(uid)
		l.at(r.Node, func(n *node) bool { return !l.takesRoom(uid, r.Node) && n.Remove(uid) })
	}
}

// Unseen is how many admitted pods have not been seen, nor given up.
func (l *Ledger) Unseen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserved.Len()
}

// on are the nodes where a pod is, or to which it was admitted.
func (l *Ledger) on(uid types.UID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, seen := l.seen[uid]; seen {
		return []string{name}
	}
	return l.reserved.Nodes(string(uid))
}

// takesRoom reports whether a pod is known to be on a node, or was admitted to it.
func (l *Ledger) takesRoom(uid types.UID, node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[uid] == node || l.reserved.Has(string(uid), node)
}

// Admit admits a pod to a node, or returns why it does not, in words. The pod takes its room from then on. One that finds none
// waits for news of the node, once and for no longer than catchUp. Of what is tried without effect (a dry run) nothing stays.
// Limits are the pod's, nil for none.
func (l *Ledger) Admit(ctx context.Context, pod *corev1.Pod, name string, limits *limited, dryRun bool) (reasons []string) {
	reasons, news := l.try(ctx, pod, name, limits, dryRun)
	if len(reasons) == 0 {
		return nil
	}
	waits.Inc()
	enough := l.clock.NewTimer(catchUp)
	defer enough.Stop()
	for over := false; len(reasons) > 0 && !over; {
		select {
		case <-news:
		case <-enough.C():
			over = true
		case <-ctx.Done():
			return reasons
		}
		reasons, news = l.try(ctx, pod, name, limits, dryRun)
	}
	return reasons
}

// try is Admit that does not wait. What it returns with reasons is closed when there is news of the node.
func (l *Ledger) try(ctx context.Context, pod *corev1.Pod, name string, limits *limited, dryRun bool) (reasons []string, news <-chan struct{}) {
	if limits != nil {
		l.locks.Lock(limits.workload) // no name of a node has a slash
		defer l.locks.Unlock(limits.workload)
		defer l.counts.tidy(limits.id.Workload)
	}
	l.at(name, func(n *node) bool {
		if l.countsAlready(pod.UID, name, dryRun) {
			return false
		}
		if reasons = append(n.Refuses(pod), limits.refuses(ctx, l, name)...); len(reasons) > 0 {
			if n.changed == nil {
				n.changed = make(chan struct{})
			}
			news = n.changed
			return false
		}
		if !dryRun && l.reserve(pod.UID, name) {
			n.Add(pod)
			l.counts.set(pod)
		}
		return false
	})
	return reasons, news
}

// countsAlready reports that a pod is known to be on some node, so that the API server will say what is to be said of this binding; or that it
// was admitted to this very node, and the binding is a repeated one: the pod may come as late as if it was the first.
func (l *Ledger) countsAlready(uid types.UID, node string, dryRun bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, bound := l.seen[uid]; bound {
		return true
	}
	if !l.reserved.Has(string(uid), node) {
		return false
	}
	if !dryRun {
		l.reserved.Reserve(string(uid), node, l.clock.Now().Add(unseen))
	}
	return true
}

// reserve notes that a pod was admitted, unless it has been seen meanwhile. A pod that was admitted to another node before is counted
// on both: which of the bindings was made, or will be, nobody knows until it is seen.
func (l *Ledger) reserve(uid types.UID, node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, bound := l.seen[uid]; bound {
		return false
	}
	return l.reserved.Reserve(string(uid), node, l.clock.Now().Add(unseen))
}
