// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// helpedByPods are the plugins that may let a waiting pod pass because another pod got a node.
// Each of them refuses only pods that say so in their spec: see awaitsPods.
var helpedByPods = []string{names.GangScheduling, names.InterPodAffinity, names.PodTopologySpread}

// narrow returns the queue of a scheduler that is not running yet, such that a pod that was bound
// is shown only to waiting pods that it can help: those with required inter-pod affinity, with
// topology spread constraints that say DoNotSchedule, or in a scheduling group.
//
// Otherwise the queue asks the hints of every waiting pod after every binding. With 500 pods that
// fit nowhere that was a third of the scheduler's processor time, and it grows with their number.
//
// The queue is returned as it is where another plugin, or an extender, wants to know of bound
// pods, and where constraints of the configuration hold for pods that have none.
func narrow(ctx context.Context, queue internalqueue.SchedulingQueue, profiles profile.Map, configured []config.KubeSchedulerProfile) internalqueue.SchedulingQueue {
	for _, f := range profiles {
		if others := awaitedByOthers(ctx, f); others != "" {
			klog.FromContext(ctx).Info("Every waiting pod is looked at after every binding, because a plugin wants to know of bound pods", "plugin", others)
			return queue
		}
	}
	if spreadsByDefault(configured) {
		klog.FromContext(ctx).Info("Every waiting pod is looked at after every binding, because of default constraints", "plugin", names.PodTopologySpread)
		return queue
	}
	return &narrowedQueue{SchedulingQueue: queue, awaiting: sets.New[types.UID]()}
}

// awaitedByOthers returns the plugin of a profile that wants to know of bound pods and is not
// among helpedByPods, "" if there is none. Of a plugin that does not say what it wants to know,
// the framework says that it wants to know everything; so it does of extenders.
func awaitedByOthers(ctx context.Context, f framework.Framework) string {
	for _, plugin := range f.EnqueueExtensions() {
		if slices.Contains(helpedByPods, plugin.Name()) {
			continue
		}
		events, err := plugin.EventsToRegister(ctx)
		if err != nil {
			return plugin.Name()
		}
		for _, e := range events {
			if framework.MatchClusterEvents(e.Event, framework.EventAssignedPodAdd) {
				return plugin.Name()
			}
		}
	}
	return ""
}

// spreadsByDefault reports whether a profile has topology spread constraints for pods without.
// Those that are built in refuse no pod.
func spreadsByDefault(profiles []config.KubeSchedulerProfile) bool {
	for _, p := range profiles {
		for _, c := range p.PluginConfig {
			if args, ok := c.Args.(*config.PodTopologySpreadArgs); ok && len(args.DefaultConstraints) > 0 {
				return true
			}
		}
	}
	return false
}

// narrowedQueue is a queue that looks at fewer pods after a binding, and at none if it can help none.
type narrowedQueue struct {
	internalqueue.SchedulingQueue

	mu sync.Mutex // guards awaiting
	// awaiting are the pods without a node for which awaitsPods holds, in the queue or being tried.
	awaiting sets.Set[types.UID]
}

// Add, Update and Delete are told of each pod without a node; Delete also when it gets one.
func (q *narrowedQueue) Add(ctx context.Context, pod *corev1.Pod) {
	q.note(pod.UID, awaitsPods(pod))
	q.SchedulingQueue.Add(ctx, pod)
}

// Update is beside Add.
func (q *narrowedQueue) Update(ctx context.Context, oldPod, newPod *corev1.Pod) {
	q.note(newPod.UID, awaitsPods(newPod))
	q.SchedulingQueue.Update(ctx, oldPod, newPod)
}

// Delete is beside Add.
func (q *narrowedQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.note(pod.UID, false)
	q.SchedulingQueue.Delete(logger, pod)
}

func (q *narrowedQueue) note(uid types.UID, awaits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if awaits {
		q.awaiting.Insert(uid)
	} else {
		q.awaiting.Delete(uid)
	}
}

// anyAwaits reports whether there is a pod that one with a node may help.
func (q *narrowedQueue) anyAwaits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.awaiting.Len() > 0
}

// MoveAllToActiveOrBackoffQueue moves the waiting pods that an event may help. Pods that are being
// tried meanwhile are not left out: the queue keeps the event for them.
func (q *narrowedQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any, preCheck internalqueue.PreEnqueueCheck) {
	if preCheck == nil && event == framework.EventAssignedPodAdd {
		if !q.anyAwaits() {
			return
		}
		preCheck = awaitsPods
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
}

// awaitsPods reports whether one of helpedByPods may have refused a pod for want of another pod.
// What is only preferred refuses nobody, and no pod that comes ends an anti-affinity.
func awaitsPods(pod *corev1.Pod) bool {
	return pod.Spec.SchedulingGroup != nil || len(fwk.GetPodAffinityTerms(pod.Spec.Affinity)) > 0 ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.DoNotSchedule
		})
}
