// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/claims"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/internal/notices"
)

// Name is the plugin's name in a profile.
const Name = "SpreadTree"

// SpreadTree is the plugin.
type SpreadTree struct {
	handle     fwk.Handle
	identifier *clusterview.Identifier
	namespaces corelisters.NamespaceLister
	hints      config.NodeHint
	scaleDown  config.ScaleDown
	decisions  config.DecisionRecord
	gauges     gauges
	prefetch   feasibility.Prefetch
	ties       fwk.ScorePlugin // nil for none
	prefers    bool            // the profile prefers nodes
	claims     *claims.Claims
	notices    *notices.Notices

	// mu guards all below: a scrape and a timer come from other goroutines than the one
	// that decides. Filters and faults are asked under it, so that they must not call back
	// into the plugin.
	mu     sync.Mutex
	trees  *trees
	idle   idle
	looked *lru.Cache
}

var (
	_ fwk.PreEnqueuePlugin  = &SpreadTree{}
	_ fwk.PreScorePlugin    = &SpreadTree{}
	_ fwk.ScorePlugin       = &SpreadTree{}
	_ fwk.ReservePlugin     = &SpreadTree{}
	_ fwk.EnqueueExtensions = &SpreadTree{}
	_ fwk.SignPlugin        = &SpreadTree{}
)

// New makes the plugin from *config.SpreadTreeArgs.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.SpreadTreeArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.SpreadTreeArgs, got %T", Name, obj)
	}
	if err := validation.SpreadTreeArgs(nil, args).ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	apps := handle.SharedInformerFactory().Apps().V1()
	identifier, err := clusterview.WatchingIdentifier(apps.ReplicaSets())
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	pl := &SpreadTree{
		handle:     handle,
		identifier: identifier,
		namespaces: handle.SharedInformerFactory().Core().V1().Namespaces().Lister(),
		hints:      args.NodeHint,
		scaleDown:  args.ScaleDown,
		decisions:  args.DecisionRecord,
		prefetch:   feasibility.UsualPrefetch,
		claims:     claims.New(handle),
		gauges:     newGauges(handle.ProfileName()),
		trees:      newTrees(identifier, apps.StatefulSets().Lister(), args.CountRevisions == config.CountAll),
		notices:    notices.New(handle.EventRecorder()),
		looked:     lru.New(maxLooked),
	}
	pl.idle.clock = clock.RealClock{}
	pl.trees.onUse = pl.watchLocked
	pl.live(ctx, handle.ProfileName())
	return pl, nil
}

// Name returns the plugin's name.
func (pl *SpreadTree) Name() string { return Name }

// SignPod signs the pods that the tree does not place. Equal signatures say that two
// pods get the same scores, and here the second never gets those of the first.
func (pl *SpreadTree) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if !pl.Places(pod) {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "every pod that the spread tree places changes the scores of the next")
}

// PreEnqueue lets every pod in. It makes the plugin one of those that may refuse pods, which
// are all that a framework shows: package upstream would not find it to ask it for hints.
func (pl *SpreadTree) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }

// EventsToRegister lists nothing: the plugin refuses no pod, so none waits for it.
// Without this method pods would be thought to wait for every event there is.
func (pl *SpreadTree) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// cycle is what a decision needs to know of its cycle.
type cycle struct {
	pod *corev1.Pod
	// levels are as the plugin Preferences resolved them. In a profile without it, the pod's
	// own word is all there is.
	levels   clusterview.Levels
	faults   clusterview.Faults
	snapshot podcount.Snapshot
}

func (pl *SpreadTree) read(state fwk.CycleState, pod *corev1.Pod) (cycle, error) {
	c := cycle{pod: pod}
	var found bool
	var err error
	if c.levels, found, err = clusterview.ReadLevels(state); !found && err == nil {
		c.levels, err = clusterview.LevelsOf(pod, nil, nil)
	}
	if err != nil {
		return c, err
	}
	c.levels = c.levels.WithKey() // all caches are asked by it
	if c.faults, err = clusterview.ReadFaults(state); err != nil {
		return c, err
	}
	nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return c, fmt.Errorf("listing nodes: %w", err)
	}
	c.snapshot = podcount.Snapshot{Nodes: nodes, Tentative: state.IsPodGroupSchedulingCycle()}
	return c, nil
}
