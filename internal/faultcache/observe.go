// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// untilEnded is how long a pod that has vanished from the scheduler's informer may
// take to appear in that of pods that have ended.
const untilEnded = 2 * time.Second

// revisionOf is the ledger's name for a revision. In a workload that a label names, a
// hash is one of its owner's.
func revisionOf(id clusterview.Identity) failure.Revision {
	revision := id.Revision
	if id.Owner != "" {
		revision = id.Owner + "/" + revision
	}
	return failure.Revision{Workload: id.Workload.String(), Revision: revision}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// observePod records a pod on a node, and its failures. The caller holds the lock.
func (c *Cache) observePod(pod *corev1.Pod, failures []podoutcome.Failure) {
	// Most of the time nothing fails, and then nothing needs to be known of pods.
	if len(failures) == 0 && len(c.tracked) == 0 && len(c.pending) == 0 {
		delete(c.assumed, pod.UID)
		return
	}
	id := c.identifier.Identify(pod)
	if id.Provisional {
		return // until its ReplicaSet is seen; what is assumed of it stays so long
	}
	of := revisionOf(id)
	c.correct(pod, of)
	for _, f := range failures {
		c.fail(pod, of, pod.Spec.NodeName, f)
	}
	c.observePending(pod, of)
	if c.ledger.Knows(of) {
		c.follow(pod, of)
	}
}

// correct takes back what was assumed or seen of a pod if it is otherwise: it was bound
// elsewhere, or has other labels.
func (c *Cache) correct(pod *corev1.Pod, of failure.Revision) {
	if a, ok := c.assumed[pod.UID]; ok {
		delete(c.assumed, pod.UID)
		if a.of != of || a.node != pod.Spec.NodeName {
			c.ledger.Gone(a.of, a.node, a.uid)
			c.wake()
		}
	}
	if t, ok := c.podStates[pod.UID]; ok && (t.of != of || t.node != pod.Spec.NodeName) {
		c.gone(t)
	}
}

// fail records a failure. With the first of a revision all its pods are recorded.
func (c *Cache) fail(pod *corev1.Pod, of failure.Revision, node string, f podoutcome.Failure) {
	at := c.failedAt(pod, f)
	if !c.counts(node, at) {
		return
	}
	isNew, first := c.ledger.Fail(of, node, c.ruleFor(of, pod), failure.Failure{Pod: string(pod.UID), Key: f.Key, Kind: f.Kind, At: at})
	if !isNew {
		return
	}
	failuresTotal.WithLabelValues(c.options.SchedulerName, podoutcome.KindClass(f.Kind)).Inc()
	c.logger.V(4).Info("A pod failed on its node", "pod", klog.KObj(pod), "node", node, "workload", of.Workload, "revision", of.Revision,
		"kind", f.Kind, "at", at, "message", f.Message)
	c.wake()
	if first {
		c.track(of, &tracked{family: clusterview.Family(pod), regarding: c.identifier.Regarding(pod), failed: at})
	} else if t := c.tracked[of]; t != nil {
		t.failed = podoutcome.Latest(t.failed, at)
	}
}

// track begins to follow a revision: all its pods are recorded.
func (c *Cache) track(of failure.Revision, t *tracked) {
	c.tracked[of] = t
	c.observeFamily(t.family)
	for _, a := range c.assumed {
		if a.of == of {
			c.ledger.Place(a.of, a.node, a.uid)
		}
	}
}

// observeAll begins: it observes all pods that there are. Pods that change meanwhile are
// observed by the handlers as well.
func (c *Cache) observeAll() {
	c.lock()
	c.begun = true
	c.mu.Unlock()
	for _, informer := range []cache.SharedIndexInformer{c.pods, c.ended} {
		if informer == nil {
			continue
		}
		for _, key := range informer.GetIndexer().ListKeys() {
			c.observeNow(informer, key)
		}
	}
}

// observeNow observes a pod as it is now, if it exists.
func (c *Cache) observeNow(informer cache.SharedIndexInformer, key string) {
	c.lock()
	defer c.mu.Unlock()
	// Read under the lock, so that a later change is observed later.
	obj, exists, err := informer.GetIndexer().GetByKey(key)
	if pod, ok := obj.(*corev1.Pod); err == nil && exists && ok && pod.Spec.NodeName != "" && c.concerns(pod) {
		c.observePod(pod, podoutcome.Failures(pod))
	}
}

// observeFamily observes all pods of a family that have nodes. The caller holds the lock.
func (c *Cache) observeFamily(family string) {
	for pod := range c.family(family) {
		if pod.Spec.NodeName != "" {
			c.observePod(pod, podoutcome.Failures(pod))
		}
	}
}

// family are all pods of a family whose fate is held against their nodes, those that have
// ended too.
func (c *Cache) family(name string) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, informer := range []cache.SharedIndexInformer{c.pods, c.ended} {
			if informer == nil {
				continue
			}
			objects, err := informer.GetIndexer().ByIndex(familyIndex+c.options.SchedulerName, name)
			if err != nil {
				c.logger.Error(err, "Looking for the pods of a revision")
				continue
			}
			for _, obj := range objects {
				if pod, ok := obj.(*corev1.Pod); ok && c.concerns(pod) && !yield(pod) {
					return
				}
			}
		}
	}
}

// follow records where a pod of a tracked revision is and how it does.
func (c *Cache) follow(pod *corev1.Pod, of failure.Revision) {
	defer c.wake()
	c.ruleFor(of, pod)
	uid, node := string(pod.UID), pod.Spec.NodeName
	t, known := c.podStates[pod.UID]
	if ended(pod) || pod.DeletionTimestamp != nil {
		if at, well := c.succeededAt(pod, known); well {
			c.ledger.Succeed(of, node, uid, at)
		}
		c.ledger.Gone(of, node, uid)
		delete(c.podStates, pod.UID)
		return
	}
	if !known {
		t = &podState{of: of, key: cache.NewObjectName(pod.Namespace, pod.Name).String(), node: node, uid: uid}
		c.podStates[pod.UID] = t
	}
	t.proof, t.leaving = time.Time{}, time.Time{}
	c.ledger.Place(of, node, uid)
	since, well := c.wellSince(pod, t)
	if !well {
		return
	}
	if proof := since.Add(c.options.ProvenAfter); proof.After(c.Clock.Now()) {
		t.proof = proof
	} else {
		c.ledger.Succeed(of, node, uid, proof)
	}
}

// gone records that a pod is not on its node any more.
func (c *Cache) gone(t *podState) {
	c.ledger.Gone(t.of, t.node, t.uid)
	delete(c.podStates, types.UID(t.uid))
	c.wake()
}

// forgetNode starts a node anew, and observes again what runs there, if the node exists.
func (c *Cache) forgetNode(node string) {
	c.ledger.ForgetNode(node)
	c.wake()
	_, err := c.nodes.Get(node)
	gone := err != nil
	for uid, t := range c.podStates {
		if t.node != node {
			continue
		}
		delete(c.podStates, uid)
		if gone {
			continue
		}
		obj, exists, err := c.pods.GetIndexer().GetByKey(t.key)
		if pod, ok := obj.(*corev1.Pod); err == nil && exists && ok && pod.UID == uid && pod.Spec.NodeName == node {
			c.observePod(pod, podoutcome.Failures(pod))
		}
	}
}
