// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// The methods that are overridden here by embedding. Another name in the next Kubernetes would
// leave ours uncalled without a word: here it is an error of the compiler. The methods of the
// cache, of which any may alter a node, are in TestCacheHasNoUnknownMethods.
var (
	_ func(framework.Framework, context.Context, fwk.CycleState, *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) = framework.Framework.RunPreFilterPlugins

	_ func(framework.Framework, context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) = framework.Framework.RunPostFilterPlugins

	_ func(framework.Framework, context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status = framework.Framework.RunBindPlugins

	_ func(framework.Framework, context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status = framework.Framework.RunFilterPluginsWithNominatedPods

	_ func(framework.Framework, context.Context, fwk.CycleState, *corev1.Pod, string) = framework.Framework.RunPostBindPlugins

	_ func(framework.Framework) events.EventRecorderLogger = framework.Framework.EventRecorder

	_ func(framework.Framework, context.Context, *corev1.Pod, fwk.PodSignature, fwk.CycleState, int64) string = framework.Framework.GetNodeHint

	_ func(framework.Framework, context.Context, fwk.PodSignature, string, string, framework.SortedScoredNodes, int64) = framework.Framework.StoreScheduleResults

	_ func(framework.Framework) fwk.APICacher = framework.Framework.APICacher

	_ func(framework.Framework) fwk.Parallelizer = framework.Framework.Parallelizer

	_ func(fwk.Parallelizer, context.Context, int, workqueue.DoWorkPieceFunc, string) = fwk.Parallelizer.Until

	_ func(internalqueue.SchedulingQueue, klog.Logger, fwk.ClusterEvent, any, any, internalqueue.PreEnqueueCheck) = internalqueue.SchedulingQueue.MoveAllToActiveOrBackoffQueue

	_ func(internalqueue.SchedulingQueue, context.Context, *corev1.Pod)              = internalqueue.SchedulingQueue.Add
	_ func(internalqueue.SchedulingQueue, context.Context, *corev1.Pod, *corev1.Pod) = internalqueue.SchedulingQueue.Update
	_ func(internalqueue.SchedulingQueue, klog.Logger, *corev1.Pod)                  = internalqueue.SchedulingQueue.Delete

	_ func(preemption.Interface, context.Context, map[string]*extenderv1.Victims) []func(node string) int64 = preemption.Interface.OrderedScoreFuncs

	_ func(internalcache.Cache, klog.Logger, *internalcache.Snapshot) error = internalcache.Cache.UpdateSnapshot
)

// The methods by which internal/tenants knows the pods of what is queued. Without them the pods of a group would have no turn.
var (
	_ interface{ GetPodInfo() fwk.PodInfo }           = (*framework.QueuedPodInfo)(nil)
	_ interface{ GetUnscheduledPods() []*corev1.Pod } = (*framework.QueuedPodGroupInfo)(nil)
)
