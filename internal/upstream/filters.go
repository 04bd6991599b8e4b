// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// nodeLocal are the filters of kube-scheduler that look at nothing but the pod and one node:
// the object, and what stands on it. What they said holds until the node changes.
//
// All others look further: at pods on other nodes (InterPodAffinity, also for the sake of
// pods that are there already; PodTopologySpread), or at objects that no node knows of
// (volumes, resource claims). Those skip the pods that are none of their concern, and say
// so to the framework in PreFilter. Of other plugins the caller of Adapt knows.
var nodeLocal = []string{
	names.NodeName,
	names.NodeUnschedulable,
	names.TaintToleration,
	names.NodeResourcesFit,
	names.NodeAffinity,
	names.NodePorts,
}

// clusterScoped names the filters of a profile that may look further.
func clusterScoped(f framework.Framework, local []string) []string {
	var far []string
	for _, p := range f.ListPlugins().Filter.Enabled {
		if !slices.Contains(nodeLocal, p.Name) && !slices.Contains(local, p.Name) {
			far = append(far, p.Name)
		}
	}
	return far
}

// Lasting reports whether what the filters of a profile say to a pod depends on nothing but the pod and the node. It is known after
// PreFilter. Beside those of kube-scheduler, local names the filters that look no further.
func Lasting(f framework.Framework, state fwk.CycleState, pod *corev1.Pod, local []string) bool {
	return lasting(state, pod, clusterScoped(f, local))
}

// lasting reports that no filter of the pod's cycle looks further than at one node. It
// is known after PreFilter. Constraints looks further for addresses: at the informer's node.
func lasting(state fwk.CycleState, pod *corev1.Pod, far []string) bool {
	skipped := state.GetSkipFilterPlugins()
	return !clusterview.ConstrainsAddresses(pod) && !slices.ContainsFunc(far, func(name string) bool { return !skipped.Has(name) })
}
