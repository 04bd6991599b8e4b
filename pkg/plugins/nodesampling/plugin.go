// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodesampling is the plugin NodeSampling: pods on the full path are decided about by a sample of the nodes,
// instead of all of them. It is for large clusters whose pods have preferences of their own, for which no
// node is proposed.
//
//   - plugin.go: the plugin, which package upstream asks for a sample
//   - groups.go: the nodes by group, as an informer has them
package nodesampling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// Name is the plugin's name in a profile.
const Name = "NodeSampling"

// NodeSampling is the plugin.
type NodeSampling struct {
	groups  *groups
	timeout time.Duration
	clock   clock.PassiveClock
	// sampler is not locked: the scheduler decides about one pod at a time.
	sampler *sampling.Sampler
}

var (
	_ fwk.PreEnqueuePlugin  = &NodeSampling{}
	_ fwk.EnqueueExtensions = &NodeSampling{}
)

// New makes the plugin from *config.NodeSamplingArgs.
func New(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.NodeSamplingArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.NodeSamplingArgs, got %T", Name, obj)
	}
	if err := validation.NodeSamplingArgs(nil, args).ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	known, err := newGroups(handle.SharedInformerFactory().Core().V1().Nodes(), args.TopologyKey)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &NodeSampling{
		groups: known, timeout: time.Duration(args.TimeoutMilliseconds) * time.Millisecond, clock: clock.RealClock{},
		sampler: &sampling.Sampler{
			Groups: sampling.BasisPoints(args.GroupsBasisPoints), Nodes: sampling.BasisPoints(args.NodesBasisPoints),
			Strategy: sampling.Strategy(args.Strategy), Intn: rand.IntN,
		},
	}, nil
}

// Name returns the plugin's name.
func (pl *NodeSampling) Name() string { return Name }

// PreEnqueue lets every pod in. It makes the plugin one of those that may refuse pods, which are all
// that a framework shows: package upstream would not find it to ask it for samples.
func (pl *NodeSampling) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }

// EventsToRegister lists nothing: the plugin refuses no pod.
func (pl *NodeSampling) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// Sample returns nodes that fit, none if none was found in time. fits asks a pod's filters about a node.
func (pl *NodeSampling) Sample(fits func(node string) bool) []string {
	until := pl.clock.Now().Add(pl.timeout)
	return pl.sampler.Sample(pl.groups.list(), fits, func() bool { return pl.clock.Now().Before(until) })
}
