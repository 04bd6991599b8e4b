// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
)

// trackedCache is a scheduler's cache that keeps a journal of the nodes that change in it.
//
// The cache knows them itself: it is how it updates its snapshot. But it tells nobody, so
// that whoever looks at a snapshot has to compare the generations of all its nodes, and
// with 5,000 of them that was more than half of what it took to place a pod.
//
// Every method that alters what a node's entry says is here; those on pod groups
// alter no node.
type trackedCache struct {
	internalcache.Cache
	journal *journal

	// mu makes a change and its note one: a snapshot must not show a change that is
	// noted after it, or the note would come with the next one.
	mu sync.Mutex
	// noted are the nodes that have changed since the last snapshot, unless they are too
	// many: a replica that is not the leader takes no snapshot for months.
	noted   sets.Set[string]
	tooMany bool
}

// track wraps the cache of a scheduler that is not running yet, and returns what says which
// nodes have changed in it.
func track(cache internalcache.Cache) (internalcache.Cache, podcount.Changes) {
	j := newJournal()
	return &trackedCache{Cache: cache, journal: j, noted: sets.New[string]()}, j
}

// note has nodes in the next entries of the journal.
func (t *trackedCache) note(nodes ...string) {
	t.noted.Insert(nodes...)
	if t.noted.Len() > maxJournal {
		t.noted, t.tooMany = sets.New[string](), true
	}
}

// stands returns the node on which the cache has a pod, "" for none, which may be another
// one than the pod says.
func (t *trackedCache) stands(pod *corev1.Pod) string {
	known, err := t.GetPod(pod)
	if err != nil {
		return ""
	}
	return known.Spec.NodeName
}

// UpdateSnapshot closes the entries of the snapshot before.
func (t *trackedCache) UpdateSnapshot(logger klog.Logger, snapshot *internalcache.Snapshot) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.Cache.UpdateSnapshot(logger, snapshot)
	if err != nil || t.tooMany {
		t.journal.lose()
	} else {
		t.journal.add(t.noted.Delete("").UnsortedList())
	}
	// Not cleared: a map that has held all nodes is gone through as if it still did, before
	// every pod from here on.
	t.noted, t.tooMany = sets.New[string](), false
	return err
}

func (t *trackedCache) AssumePod(logger klog.Logger, pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod.Spec.NodeName)
	return t.Cache.AssumePod(logger, pod)
}

func (t *trackedCache) ForgetPod(logger klog.Logger, pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod.Spec.NodeName, t.stands(pod))
	return t.Cache.ForgetPod(logger, pod)
}

func (t *trackedCache) RemoveAssumedPod(logger klog.Logger, pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod.Spec.NodeName, t.stands(pod))
	return t.Cache.RemoveAssumedPod(logger, pod)
}

func (t *trackedCache) AddPod(logger klog.Logger, pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod.Spec.NodeName, t.stands(pod))
	return t.Cache.AddPod(logger, pod)
}

func (t *trackedCache) UpdatePod(logger klog.Logger, oldPod, newPod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(oldPod.Spec.NodeName, newPod.Spec.NodeName, t.stands(oldPod))
	return t.Cache.UpdatePod(logger, oldPod, newPod)
}

func (t *trackedCache) RemovePod(logger klog.Logger, pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod.Spec.NodeName, t.stands(pod))
	return t.Cache.RemovePod(logger, pod)
}

func (t *trackedCache) AddNode(logger klog.Logger, node *corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(node.Name)
	t.Cache.AddNode(logger, node)
}

func (t *trackedCache) UpdateNode(logger klog.Logger, oldNode, newNode *corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(oldNode.Name, newNode.Name)
	t.Cache.UpdateNode(logger, oldNode, newNode)
}

func (t *trackedCache) RemoveNode(logger klog.Logger, node *corev1.Node) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(node.Name)
	return t.Cache.RemoveNode(logger, node)
}
