// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// recoverDiscarded has a scheduler that is not running yet put back the pods that its queue discards.
//
// The queue puts a pod that was refused where the next one is taken from, and notes only then that the pod is no longer being tried. If it is taken in
// between, it counts as tried twice, and is discarded. From then on it is neither queued nor tried, and waits until somebody changes it. In the
// scheduling cycle nothing is taken meanwhile. But a pod that waits at Permit is refused beside the next cycles.
//
// That cannot be prevented from outside: the queue does both under one lock, and takes pods under another. To note first that the pod is no longer
// being tried would make the queue forget what has happened meanwhile, which may have been what the pod waits for.
func recoverDiscarded(sched *Scheduler) {
	handle := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		handle(ctx, f, pod, status, nominating, start)
		if pod.Pod.Spec.NodeName == "" {
			return // it was refused in the cycle
		}
		if lost := discarded(sched, f, pod.Pod); lost != nil {
			klog.FromContext(ctx).Info("Put a pod back that the queue had discarded", "pod", klog.KObj(lost))
			sched.SchedulingQueue.Add(ctx, lost)
		}
	}
}

// discarded returns the pod as it is now if a scheduler should place it, and has lost it.
//
// A pod is queued, then tried, then assumed, then bound. What is asked comes in this order, so that a pod that goes on meanwhile is found in a later
// place. The handler of its next failure looks after one that comes back.
func discarded(sched *Scheduler, f framework.Framework, pod *corev1.Pod) *corev1.Pod {
	if _, queued := sched.SchedulingQueue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup); queued {
		return nil
	}
	if slices.ContainsFunc(sched.SchedulingQueue.InFlightPods(), func(p *corev1.Pod) bool { return p.UID == pod.UID }) {
		return nil
	}
	if assumed, err := sched.Cache.IsAssumedPod(pod); err != nil || assumed {
		return nil
	}
	now, err := f.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	if err != nil || now.UID != pod.UID || now.Spec.NodeName != "" || now.DeletionTimestamp != nil {
		return nil
	}
	return now
}
