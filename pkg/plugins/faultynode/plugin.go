// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/faultcache"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// Name is the plugin's name in a profile.
const Name = "FaultyNode"

// FaultyNode is the plugin.
type FaultyNode struct {
	cache *faultcache.Cache
}

var (
	_ fwk.PreFilterPlugin   = &FaultyNode{}
	_ fwk.PreScorePlugin    = &FaultyNode{}
	_ fwk.ScorePlugin       = &FaultyNode{}
	_ fwk.ReservePlugin     = &FaultyNode{}
	_ fwk.EnqueueExtensions = &FaultyNode{}
	_ fwk.SignPlugin        = &FaultyNode{}
)

// New makes the plugin from *config.FaultyNodeArgs. What it learns it learns until the
// context ends: informers that are not the framework's have no other beginning.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return NewWithClock(ctx, obj, handle, clock.RealClock{})
}

// NewWithClock makes the plugin for who looks at a cluster as it was at another time.
func NewWithClock(ctx context.Context, obj runtime.Object, handle fwk.Handle, now clock.Clock) (fwk.Plugin, error) {
	args, ok := obj.(*config.FaultyNodeArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.FaultyNodeArgs, got %T", Name, obj)
	}
	if err := validation.FaultyNodeArgs(nil, args).ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	known, err := policies.For(ctx, handle)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	sources := faultcache.Sources{
		Client: handle.ClientSet(), Informers: handle.SharedInformerFactory(), Clock: now,
		Policy:   func(pod *corev1.Pod) *clusterview.Policy { return governing(known, pod) },
		Policies: known.Wait,
	}
	if recorder := handle.EventRecorder(); recorder != nil {
		sources.Recorder = recorder
	}
	ctx = klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), Name))
	cache, err := faultcache.New(ctx, options(handle.ProfileName(), args), sources)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	go cache.Run(ctx)
	return &FaultyNode{cache: cache}, nil
}

// governing is the policy that governs a pod. While that is not known the profile's
// rule holds: it is no reason to refuse a pod, and a plugin that needs to know more refuses it.
func governing(known *policies.Policies, pod *corev1.Pod) *clusterview.Policy {
	policy, err := known.Governing(pod)
	if err != nil {
		return nil
	}
	return policy
}

func options(schedulerName string, args *config.FaultyNodeArgs) faultcache.Options {
	o := faultcache.Options{
		SchedulerName: schedulerName,
		Rule:          failure.Rule{Threshold: int(args.Threshold), Window: time.Duration(args.WindowSeconds) * time.Second},
		HalfOpen:      args.HalfOpen,
		OwnErrors:     args.OwnErrors == config.OwnErrorsForgive,
		ProvenAfter:   time.Duration(args.ProvenAfterSeconds) * time.Second,
		Suspects:      int(args.Suspects.Workloads),
	}
	if args.Record.Enabled {
		o.RecordNamespace = args.Record.Namespace
	}
	return o
}

// Name returns the plugin's name.
func (pl *FaultyNode) Name() string { return Name }

// SignPod signs the pods of revisions of which nothing is known, all alike: to them
// all nodes are. Equal signatures say that two pods get the same scores, and where
// something is known each pod that is placed is one more on trial. It is called under the
// lock of the scheduling queue, and takes none of the cache's.
func (pl *FaultyNode) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if pl.cache.Known(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "pods of the revision have failed, and every pod that is placed may be one on trial")
	}
	return nil, nil
}
