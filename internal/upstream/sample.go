// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

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

// Sample has a scheduler that is not running yet decide by a sample about pods on the full path, in the profiles that have
// a Sampler. It is for after Wrap: a pod for which a node is proposed needs no sample.
//
// All nodes of a sample have passed the filters. So preemption never comes to see a sample, which would have it evict
// pods although there is room elsewhere: where no node of one fits, the pod is decided about by all.
func Sample(profiles profile.Map) {
	for name, f := range profiles {
		if s := samplerOf(f); s != nil {
			register()
			for _, outcome := range []string{outcomeSampled, outcomeAllNodes} {
				samples.WithLabelValues(name, outcome)
			}
			profiles[name] = &samplingFramework{f, s}
		}
	}
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
