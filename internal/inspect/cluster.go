// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/internal/tenants"
	"github.com/espalier-scheduler/espalier/internal/upstream/simulator"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/faultynode"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// Cluster is a snapshot with a scheduler over it. It is not safe for concurrent use.
type Cluster struct {
	*snapshot.Snapshot
	*simulator.Simulator

	// Notes say what of the scheduler's configuration is not simulated.
	Notes []string

	// trees are the plugins that spread pods, by profile.
	trees map[string]*spreadtree.SpreadTree
}

// Path is how the scheduler is to decide.
type Path int

const (
	// AllNodes has the filters asked about each node, so that there is an answer for each.
	AllNodes Path = iota
	// Hints has them asked about the best nodes only, where the configuration allows it. The decisions are the same, and take less time.
	Hints
)

// Open starts a scheduler with a KubeSchedulerConfiguration, in YAML, over a snapshot. It ends with the context.
func Open(ctx context.Context, s *snapshot.Snapshot, configuration []byte, path Path) (*Cluster, error) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(configuration, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the scheduler's configuration: %w", err)
	}
	conf, is := obj.(*simulator.Configuration)
	if !is {
		return nil, fmt.Errorf("the scheduler's configuration is a %T: give a KubeSchedulerConfiguration", obj)
	}
	if path == AllNodes {
		for _, profile := range conf.Profiles {
			for _, plugin := range profile.PluginConfig {
				if args, is := plugin.Args.(*config.SpreadTreeArgs); is {
					args.NodeHint = config.NodeHintDisabled
				}
			}
		}
	}
	c := &Cluster{Snapshot: s, trees: make(map[string]*spreadtree.SpreadTree)}
	if len(conf.Extenders) > 0 {
		c.Notes = append(c.Notes, "The extenders of the scheduler's configuration are not asked. They may refuse nodes.")
	}
	registry := plugins.Registry()
	registry[spreadtree.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		pl, err := spreadtree.New(ctx, args, handle)
		if tree, is := pl.(*spreadtree.SpreadTree); is {
			c.trees[handle.ProfileName()] = tree
		}
		return pl, err
	}
	registry[nodesampling.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		c.Notes = append(c.Notes, "No samples are drawn for the profile "+handle.ProfileName()+": all nodes are looked at, where the scheduler looks at some.")
		return nodesampling.New(ctx, args, handle)
	}
	registry[nodelifetime.Name] = nodelifetime.By(func() time.Time { return s.Taken })
	registry[faultynode.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return faultynode.NewWithClock(ctx, args, handle, clockOf(s))
	}
	read := make([]*clusterview.Policy, len(s.Policies))
	for i, policy := range s.Policies {
		read[i] = clusterview.DecodePolicy(policy)
	}
	c.Simulator, err = simulator.New(ctx, simulator.Options{
		Config: conf, Plugins: registry, NodeLocal: plugins.NodeLocal(), Objects: s.Objects,
		Prepare: func(factory informers.SharedInformerFactory) error {
			partitions, allocations := readTenants(s)
			tenants.Give(ctx, factory, partitions, allocations)
			return policies.Give(ctx, factory, read...)
		},
	})
	return c, err
}
