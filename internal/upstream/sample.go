// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Sampler is a plugin that chooses some of the nodes for a pod to be decided about.
type Sampler interface {
	fwk.Plugin
	// Sample returns nodes that fit, none if it finds none. fits asks the pod's filters.
	Sample(fits func(node string) bool) []string
}

// sample has a scheduler that is not running yet decide by a sample about pods on the full path, in the profiles that have
// a Sampler. A pod for which a node is proposed needs no sample.
//
// All nodes of a sample have passed the filters. So preemption never comes to see a sample, which would have it evict
// pods although there is room elsewhere: where no node of one fits, the pod is decided about by all.
//
// It returns, a sentence each, why profiles that have a Sampler do not sample. Extenders filter after all plugins: one that refuses
// the nodes of a sample would leave a pod Pending although others fit.
func sample(profiles profile.Map) (without []string) {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		f := profiles[name]
		s := samplerOf(f)
		if s == nil {
			continue
		}
		if slices.ContainsFunc(f.Extenders(), fwk.Extender.IsFilter) {
			without = append(without, fmt.Sprintf("profile %q: sampling disabled, every pod on the full path is filtered and scored on all nodes: "+
				"the configuration has extenders that filter, which a sample cannot ask; leave them or the plugin %s away", name, s.Name()))
			continue
		}
		register()
		for _, outcome := range []string{outcomeSampled, outcomeAllNodes} {
			samples.WithLabelValues(name, outcome)
		}
		profiles[name] = &samplingFramework{f, s}
	}
	return without
}

func samplerOf(f framework.Framework) Sampler {
	for _, plugin := range f.EnqueueExtensions() {
		if s, ok := plugin.(Sampler); ok {
			return s
		}
	}
	return nil
}

// samplingFramework is a profile that leaves pods on the full path a sample of the nodes.
type samplingFramework struct {
	framework.Framework
	sampler Sampler
}

// RunPreFilterPlugins leaves a pod a sample, unless it has other nodes already: one that is proposed, one that it is nominated
// for, or those that a plugin has left it; and unless it is known to fit on none. Members of a group may have been
// confined together.
func (s *samplingFramework) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, plugins := s.Framework.RunPreFilterPlugins(ctx, state, pod)
	is := proposed(state)
	if !status.IsSuccess() || !result.AllNodes() || is.node != "" || is.outcome == outcomeNone || pod.Status.NominatedNodeName != "" || state.IsPodGroupSchedulingCycle() {
		return result, status, plugins
	}
	nodes := s.SnapshotSharedLister().NodeInfos()
	sample := s.sampler.Sample(func(node string) bool {
		info, err := nodes.Get(node)
		return err == nil && s.RunFilterPluginsWithNominatedPods(ctx, state, pod, info).IsSuccess()
	})
	if len(sample) == 0 {
		samples.WithLabelValues(s.ProfileName(), outcomeAllNodes).Inc()
		return result, status, plugins
	}
	samples.WithLabelValues(s.ProfileName(), outcomeSampled).Inc()
	return &fwk.PreFilterResult{NodeNames: sets.New(sample...)}, status, plugins.Union(sets.New(s.sampler.Name()))
}
