// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// preemptingFramework is a profile whose preemption asks a Hinter about nodes that it finds equal.
type preemptingFramework struct{ framework.Framework }

// preemptor is the pod for which others are to make way.
type preemptor struct {
	state fwk.CycleState
	pod   *corev1.Pod
}

// preemptorKey is where the context of a PostFilter has the preemptor: preemption does not hand it to its criteria.
type preemptorKey struct{}

// preemptByTree has the in-tree preemption of a profile ask a Hinter. It changes nothing of a profile without preemption.
func preemptByTree(f framework.Framework, h Hinter) framework.Framework {
	for _, plugin := range f.EnqueueExtensions() {
		if p, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
			p.Evaluator.Interface = &treePreemption{p, h}
			return preemptingFramework{f}
		}
	}
	return f
}

// RunPostFilterPlugins has preemption know for which pod it looks for victims.
func (p preemptingFramework) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return p.Framework.RunPostFilterPlugins(context.WithValue(ctx, preemptorKey{}, preemptor{state, pod}), state, pod, statuses)
}

// treePreemption is the in-tree preemption with one criterion more.
type treePreemption struct {
	*defaultpreemption.DefaultPreemption
	hinter Hinter
}

// OrderedScoreFuncs returns the in-tree criteria, with the order of the Hinter before the last of them: which victims
// are the youngest. It costs nobody else more than the in-tree preemption would: that order only decides between nodes
// with as many violated disruption budgets, and as many victims of the same priorities.
//
// The in-tree criteria are stated again because the default of nil has them all, and says nothing of ties.
func (p *treePreemption) OrderedScoreFuncs(ctx context.Context, victims map[string]*extenderv1.Victims) []func(node string) int64 {
	of, ok := ctx.Value(preemptorKey{}).(preemptor)
	if !ok {
		return p.DefaultPreemption.OrderedScoreFuncs(ctx, victims)
	}
	nodes := make([]string, 0, len(victims))
	for node := range victims {
		nodes = append(nodes, node)
	}
	order, err := p.hinter.Order(ctx, of.state, of.pod, nodes)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Victims are chosen without regard to where the pod should be", "pod", klog.KObj(of.pod))
		return p.DefaultPreemption.OrderedScoreFuncs(ctx, victims)
	}
	return []func(node string) int64{
		func(node string) int64 { return -victims[node].NumPDBViolations },
		func(node string) int64 { return -int64(corev1helpers.PodPriority(victims[node].Pods[0])) },
		func(node string) int64 { return -sumOfPriorities(victims[node].Pods) },
		func(node string) int64 { return -int64(len(victims[node].Pods)) },
		func(node string) int64 { return order[node] },
		func(node string) int64 { return util.GetEarliestPodStartTime(victims[node]).UnixNano() },
	}
}

// sumOfPriorities counts from the lowest priority there is: of few pods with a negative priority it is less than of many.
func sumOfPriorities(pods []*corev1.Pod) (sum int64) {
	for _, pod := range pods {
		sum += int64(corev1helpers.PodPriority(pod)) - math.MinInt32
	}
	return sum
}
