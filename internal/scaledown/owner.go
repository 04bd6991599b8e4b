// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package scaledown

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement/ordinal"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// owner is the numbers of the pods of one controller.
type owner struct {
	uid      types.UID
	topology *tree.Topology
	version  uint64 // of the index whose pods they are
	onNode   map[int32][]numbered
	branches map[branch]*ordinal.Set
	// foreign counts the pods whose cost somebody else has written.
	foreign int
	// reserved are the nodes with pods that the index has not shown yet, as it had looked at them when these were given a number.
	reserved map[int32]podcount.Stamp
}

// branch is one of the first level.
type branch struct {
	value      string
	lastResort bool
}

// numbered is a pod with its number, 0 for none.
type numbered struct {
	pod     types.UID
	in      branch
	n       int32
	foreign bool
}

// refresh brings the numbers up to date with the pods that count, and the nodes as they are. Pods that were given a number
// and are not in the index yet keep it until the index has looked at their node again. Then they are there, or gone: one that came and went
// between two looks never counted, and would keep its number for ever.
func (o *owner) refresh(c *Cache, in Pods, topology *tree.Topology) {
	nodes, now, known := in.Index.Since(in.Workload, o.version)
	for node, then := range o.reserved {
		if in.Index.StampOn(node) != then {
			delete(o.reserved, node)
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 && now == o.version && o.topology == topology {
		return
	}
	if !known || o.topology != topology {
		o.topology, o.foreign = topology, 0
		o.onNode, o.branches = make(map[int32][]numbered), make(map[branch]*ordinal.Set)
		o.reserved = make(map[int32]podcount.Stamp)
		nodes, _, _ = in.Index.Since(in.Workload, 0)
	}
	o.version = now
	for _, node := range nodes {
		o.readNode(c, in.Index, node)
	}
}

// readNode has the numbers on a node as they are on its pods.
func (o *owner) readNode(c *Cache, index *podcount.Index, node int32) {
	for _, p := range o.onNode[node] {
		o.uncount(p)
	}
	delete(o.onNode, node)
	value, share, ok := o.topology.First(node)
	if !ok {
		return
	}
	for _, info := range index.PodsOn(node) {
		pod := info.GetPod()
		if by := metav1.GetControllerOfNoCopy(pod); by == nil || by.UID != o.uid || !podcount.Counts(pod) {
			continue
		}
		p := numbered{pod: pod.UID, in: branch{value, share == 0}}
		if p.n, p.foreign = Read(pod); p.n == 0 && !p.foreign {
			p.n = c.reservedFor(pod.UID)
		}
		o.count(node, p)
	}
}

func (o *owner) count(node int32, p numbered) {
	o.onNode[node] = append(o.onNode[node], p)
	if p.foreign {
		o.foreign++
	}
	if p.n > 0 {
		o.branch(p.in).Add(p.n)
	}
}

func (o *owner) uncount(p numbered) {
	if p.foreign {
		o.foreign--
	}
	if p.n > 0 {
		o.branch(p.in).Remove(p.n)
	}
}

// remove takes a pod off its node that the index has never shown.
func (o *owner) remove(pod types.UID) {
	for node, pods := range o.onNode {
		if i := slices.IndexFunc(pods, func(p numbered) bool { return p.pod == pod }); i >= 0 {
			o.uncount(pods[i])
			o.onNode[node] = slices.Delete(pods, i, i+1)
			return
		}
	}
}

// ends returns the node of the pod with the lowest number, -1 if there is none, and the index of that pod and of the one with the highest.
func (o *owner) ends() (node, first, last int32) {
	node, last = -1, -1
	for at, pods := range o.onNode {
		for _, p := range pods {
			if p.n > 0 && (node < 0 || p.n-1 < first) {
				node, first = at, p.n-1
			}
			last = max(last, p.n-1)
		}
	}
	return node, first, last
}

func (o *owner) branch(b branch) *ordinal.Set {
	if o.branches[b] == nil {
		o.branches[b] = &ordinal.Set{}
	}
	return o.branches[b]
}
