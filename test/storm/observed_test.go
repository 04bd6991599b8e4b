// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// observed is what is seen of a scheduler from around and from beneath upstream.Adapt: what goes in, and what comes out.
type observed struct {
	// since is when it last asked for a pod, or was given one. Only its loop uses it.
	since time.Time
	// held are the pods that it went without for a while, with many bindings under way.
	held atomic.Int64
	// few are the looks after a binding that were at some of the waiting pods, everyone those that were at all.
	few, everyone atomic.Int64
	// dry: there are no pods.
	dry bool
	// yielded: others ran before it was given a pod.
	yielded bool
	// sought are the pods that were looked for in the queue, and admitted the asking whether a pod is to be withheld.
	sought, admitted atomic.Int64
	// changed are the nodes that have changed, by what its trees are told.
	changed atomic.Int64
}

// A pod that is not given out for so long, with so many bindings under way, is held back. A scheduler waits as long for that many.
const (
	heldFor  = 90 * time.Millisecond
	heldWith = 128
)

// asks is called when the scheduler asks for its next pod.
func (r *running) asks(server *apiServer) {
	server.cycles.Add(1)
	r.since = time.Now()
}

var errDry = errors.New("there are no pods")

// yield sees whether others run before the scheduler is given a pod, where nobody runs unless they are let. It is for before the scheduler runs.
func (r *running) yield(t *testing.T) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r.dry = true
	defer func() { r.dry = false }()
	var ran atomic.Bool
	go ran.Store(true)
	// One turn in 61 is the scheduler's own again, by Go's rules of fairness.
	for range 3 {
		if _, err := r.NextEntity(klog.FromContext(r.ctx)); !errors.Is(err, errDry) {
			t.Fatal(err)
		}
	}
	r.yielded = ran.Load()
}

// beneath has what is asked of the queue seen, before anything is wrapped around it.
func (r *running) beneath(server *apiServer) {
	r.SchedulingQueue = &seenQueue{r.SchedulingQueue, &r.observed}
	pop := r.NextEntity
	r.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		if time.Since(r.since) >= heldFor && server.binding.Load() >= heldWith {
			r.held.Add(1)
		}
		if r.dry {
			return nil, errDry
		}
		entity, err := pop(logger)
		r.since = time.Now() // it may hand it back, and ask for another one
		return entity, err
	}
}

// seenQueue counts the looks at pods that wait.
type seenQueue struct {
	internalqueue.SchedulingQueue
	*observed
}

// MoveAllToActiveOrBackoffQueue looks at pods that wait.
func (q *seenQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any, check internalqueue.PreEnqueueCheck) {
	if event == framework.EventAssignedPodAdd {
		if check == nil {
			q.everyone.Add(1)
		} else {
			q.few.Add(1)
		}
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, check)
}

// GetPod looks for a pod. Nothing else does than what puts back the pods that the queue has discarded.
func (q *seenQueue) GetPod(name, namespace string, group *corev1.PodSchedulingGroup) (*framework.QueuedPodInfo, bool) {
	q.sought.Add(1)
	return q.SchedulingQueue.GetPod(name, namespace, group)
}

// follow makes the plugin SpreadTree, with what it is told of changes seen.
func (r *running) follow(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	pl, err := spreadtree.New(ctx, args, handle)
	if tree, is := pl.(*spreadtree.SpreadTree); is {
		return &seenTree{tree, &r.observed}, err
	}
	return pl, err
}

type seenTree struct {
	*spreadtree.SpreadTree
	*observed
}

// Follow tells the tree which nodes have changed.
func (t *seenTree) Follow(changes podcount.Changes) {
	if changes == nil {
		return
	}
	t.SpreadTree.Follow(seenChanges{changes, t.observed})
}

type seenChanges struct {
	podcount.Changes
	*observed
}

// Since is what the journal says.
func (c seenChanges) Since(position uint64) (nodes []string, now uint64, known bool) {
	nodes, now, known = c.Changes.Since(position)
	if known {
		c.changed.Add(int64(len(nodes)))
	}
	return nodes, now, known
}
