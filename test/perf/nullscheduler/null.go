// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// name is no YAML for nothing, as "Null" would be.
const name = "InTurn"

// null names one node for every pod, so that no filter and no scorer has anything to
// do. It knows the pools of the benchmark: a node that a pod may not run on is
// no decision. All its work but taking the next name is done once.
type null struct {
	// pools are the names of the nodes by pool; "" holds them all. Only the
	// scheduling loop, which is one goroutine, touches what follows.
	pools map[string][]string
	nodes int // how many nodes the pools were made of
	next  map[string]int
}

var (
	_ fwk.PreFilterPlugin   = &null{}
	_ fwk.EnqueueExtensions = &null{}
)

func newNull(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &null{next: map[string]int{}}, nil
}

// Name returns the plugin's name.
func (pl *null) Name() string { return name }

// PreFilter leaves the next node of the pod's pool, and no other.
func (pl *null) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if len(nodes) != pl.nodes {
		pl.divide(nodes)
	}
	pool := pod.Spec.NodeSelector[load.PoolLabel]
	names := pl.pools[pool]
	if len(names) == 0 {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) didn't match the pod's pool")
	}
	i := pl.next[pool] % len(names)
	pl.next[pool] = i + 1
	return &fwk.PreFilterResult{NodeNames: sets.New(names[i])}, nil
}

// PreFilterExtensions returns nil: nothing is kept between the extension points.
func (pl *null) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// EventsToRegister registers none: what has no pool never gets one.
func (pl *null) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// divide lists the nodes by pool, in order of name.
func (pl *null) divide(nodes []fwk.NodeInfo) {
	pl.nodes, pl.pools = len(nodes), map[string][]string{}
	for _, info := range nodes {
		node := info.Node()
		for _, pool := range []string{"", node.Labels[load.PoolLabel]} {
			pl.pools[pool] = append(pl.pools[pool], node.Name)
		}
	}
	for _, names := range pl.pools {
		slices.Sort(names)
	}
}
