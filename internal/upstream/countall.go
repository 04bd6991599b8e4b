// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// noPodHas is a label that no pod has. A selector of pods without it selects all, and is not empty.
const noPodHas = clusterview.Prefix + "no-pod-has-this-label"

// countAll has the profiles of a scheduler that is not running yet count all pods of the namespace for a DoNotSchedule constraint whose selector is empty,
// as the API says. For levels such a selector is another thing: it counts the pods of the pod's own workload, see podcount.Index.Under.
//
// PodTopologySpread counts none for it, so that the constraint refuses no node. But it takes the victims of a preemption off what it has
// counted, and so finds room on their node that is not there.
func countAll(profiles profile.Map) {
	for name, f := range profiles {
		for _, plugin := range f.EnqueueExtensions() {
			if spread, is := plugin.(fwk.PreFilterPlugin); is && spread.Name() == names.PodTopologySpread && prefilters(f, spread.Name()) {
				profiles[name] = &countingFramework{f, spread}
			}
		}
	}
}

// prefilters reports whether a plugin is enabled at PreFilter. One that is enabled to score alone is among the plugins too.
func prefilters(f framework.Framework, plugin string) bool {
	return slices.ContainsFunc(f.ListPlugins().PreFilter.Enabled, func(p config.Plugin) bool { return p.Name == plugin })
}

// countingFramework is a profile whose PodTopologySpread counts for an empty selector too.
type countingFramework struct {
	framework.Framework
	spread fwk.PreFilterPlugin
}

// RunPreFilterPlugins has PodTopologySpread count once more where it has not counted. All that follows goes by what it has counted, and does not
// look at the selectors of the pod. Other plugins see the pod as it is.
func (f *countingFramework) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, plugins := f.Framework.RunPreFilterPlugins(ctx, state, pod)
	if counted := withoutEmpty(pod); counted != nil && (status.IsSuccess() || status.IsRejected()) {
		nodes, err := f.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("counting the pods for a constraint of pod %s/%s: %w", pod.Namespace, pod.Name, err)), nil
		}
		if _, s := f.spread.PreFilter(ctx, state, counted, nodes); !s.IsSuccess() && !s.IsSkip() {
			return nil, s.WithPlugin(f.spread.Name()), nil
		}
	}
	return result, status, plugins
}

// withoutEmpty returns a pod with selectors that are equal to its empty ones and are not empty, nil if it has none that refuses nodes.
func withoutEmpty(pod *corev1.Pod) (other *corev1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if s := c.LabelSelector; c.WhenUnsatisfiable != corev1.DoNotSchedule || s == nil || len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			continue
		}
		if other == nil {
			other = pod.DeepCopy()
		}
		other.Spec.TopologySpreadConstraints[i].LabelSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: noPodHas, Operator: metav1.LabelSelectorOpDoesNotExist}},
		}
	}
	return other
}
