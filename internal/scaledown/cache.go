// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package scaledown

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/utils/lru"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/idlecache"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/ordinal"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

const (
	// maxOwners bounds the controllers whose numbers are kept. Those of one take some 100 bytes a pod, and are read again from
	// the pods when they are needed. With fewer than there are Deployments in a backlog each would be read again for each pod.
	maxOwners = 4096
	// maxReserved bounds the pods that have a number and are not bound yet, as far as is known.
	maxReserved = 16384
	// maxTurn bounds the pods of a StatefulSet that have a turn. The order of branches is counted through from the first pod where
	// shares differ.
	maxTurn = 4096
)

// Cache has the numbers of the controllers whose pods are placed now. It is not safe for concurrent use.
type Cache struct {
	sets   appslisters.StatefulSetLister
	owners *idlecache.Cache[types.UID, *owner]
	// reserved has the numbers of pods whose bindings have not come back yet.
	reserved *lru.Cache
}

// Pods are the pods of a workload, as an index has them.
type Pods struct {
	Index    *podcount.Index
	Workload clusterview.Workload
}

// NewCache returns an empty cache. The StatefulSets say at which index their pods begin.
func NewCache(sets appslisters.StatefulSetLister) *Cache {
	return &Cache{sets, idlecache.New[types.UID](maxOwners, func(*owner) {}), lru.New(maxReserved)}
}

// Reserve gives a pod the lowest number that is free in its node's branch of the first level. It is false for pods of controllers
// that do not look at deletion costs, where there is no such branch, and where somebody else writes the costs of the
// controller's pods: then foreign is true, and all of them are left alone.
func (c *Cache) Reserve(pod *corev1.Pod, node int32, in Pods, topology *tree.Topology) (is ordinal.Ordinal, foreign, ok bool) {
	by := controllerOf(pod)
	value, share, there := topology.First(node)
	if by == nil || !there {
		return is, false, false
	}
	if _, costed := pod.Annotations[corev1.PodDeletionCost]; costed {
		return is, true, false
	}
	o := c.owner(by.UID, in, topology)
	if o.foreign > 0 {
		return is, true, false
	}
	b := branch{value, share == 0}
	is = ordinal.Ordinal{N: o.branch(b).Lowest(), Share: ShareOf(&topology.Levels()[0], share)}
	if is.N > ordinal.Max {
		return is, false, false
	}
	o.count(node, numbered{pod: pod.UID, in: b, n: is.N})
	o.reserved[node] = in.Index.StampOn(node)
	c.reserved.Add(pod.UID, is.N)
	return is, false, true
}

// Turn is that of a StatefulSet's pod, nil for others. Its number counts from the first index of the set, or from that of a pod below, which
// the set had before it was numbered anew: those that it keeps were placed by it.
func (c *Cache) Turn(pod *corev1.Pod, in Pods, topology *tree.Topology) *tree.Turn {
	set, index := indexed(pod)
	if set == nil {
		return nil
	}
	node, first, last := c.owner(set.UID, in, topology).ends()
	begin := c.start(pod.Namespace, set)
	if node >= 0 {
		begin = min(begin, first)
	}
	number := index - begin
	if number < 0 || number > maxTurn {
		return nil
	}
	return &tree.Turn{Pod: number, Beside: node, BesidePod: first - begin, Last: min(last-begin, maxTurn)}
}

// start is the first index of a StatefulSet's pods. It is 0, as for most, while the set is not known: its pod may be seen before it,
// and one of the name that was deleted may be seen still. It is asked for with each pod, so that the next ones make up for a pod
// that went elsewhere meanwhile.
func (c *Cache) start(namespace string, of *metav1.OwnerReference) int32 {
	set, err := c.sets.StatefulSets(namespace).Get(of.Name)
	if err != nil || set.UID != of.UID || set.Spec.Ordinals == nil {
		return 0
	}
	return set.Spec.Ordinals.Start
}

// owner is that of a controller, brought up to date.
func (c *Cache) owner(uid types.UID, in Pods, topology *tree.Topology) *owner {
	o, known := c.owners.Get(uid)
	if !known {
		o = &owner{uid: uid}
		c.owners.Put(uid, o)
	}
	o.refresh(c, in, topology)
	return o
}

// Unreserve takes a number back that a pod was given.
func (c *Cache) Unreserve(pod *corev1.Pod) {
	c.reserved.Remove(pod.UID)
	if by := controllerOf(pod); by != nil {
		if o, known := c.owners.Peek(by.UID); known {
			o.remove(pod.UID)
		}
	}
}

// EvictIdle evicts the numbers of controllers that have had no pod placed since the last call, and returns how many are left.
func (c *Cache) EvictIdle() int { return c.owners.EvictIdle() }

func (c *Cache) reservedFor(pod types.UID) int32 {
	n, _ := c.reserved.Get(pod)
	is, _ := n.(int32)
	return is
}

// ShareOf is a branch's share as its ordinals have it. The sum is that of the level as it is written, not of the branches that
// there are: costs must not change their meaning when a zone comes.
func ShareOf(l *level.Level, share int32) ordinal.Share {
	var sum int64
	for _, w := range l.Weights {
		sum += w.Share
	}
	if l.Share == level.Allocatable {
		sum = level.MaxShare
	}
	switch {
	case share == 0:
		return ordinal.Share{Of: 0, Sum: 1}
	case sum == 0:
		return ordinal.Share{}
	}
	return ordinal.Share{Of: int64(share), Sum: max(sum, int64(share))}
}
