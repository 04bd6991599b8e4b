// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// scheduled is the reason of the event that a bound pod gets.
const scheduled = "Scheduled"

// announce changes what the profiles of a scheduler that is not running yet write as events. They write Scheduled only for the pods that should have
// it, by profile; for all pods, where nothing is said. Where a pod was bound to another node than its cycle knows of, the event names that
// node. A message without arguments is written as it is: kube-scheduler writes that of FailedScheduling as a format, and a message may
// quote an annotation that has a % in it.
func announce(profiles profile.Map, should map[string]func(*corev1.Pod) bool) {
	for name, f := range profiles {
		a := announcer{EventRecorderLogger: f.EventRecorder(), should: should[name]}
		a.rebinds, _ = f.(*rebindingFramework)
		profiles[name] = &announcingFramework{f, a}
	}
}

// announcingFramework is a profile whose events go through an announcer.
type announcingFramework struct {
	framework.Framework
	announcer announcer
}

// EventRecorder returns the announcer.
func (f *announcingFramework) EventRecorder() events.EventRecorderLogger { return f.announcer }

// announcer writes events, of which some are left out.
type announcer struct {
	events.EventRecorderLogger
	// should reports whether a pod gets the event Scheduled, nil for all.
	should func(*corev1.Pod) bool
	// rebinds knows which pods were bound to other nodes, nil for none.
	rebinds *rebindingFramework
}

// WithLogger returns an announcer that logs as it is told.
func (a announcer) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	a.EventRecorderLogger = a.EventRecorderLogger.WithLogger(logger)
	return a
}

// Eventf writes an event. The node is the last argument of the one that says where a pod was bound.
func (a announcer) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if pod, is := regarding.(*corev1.Pod); is && reason == scheduled {
		if a.should != nil && !a.should(pod) {
			return
		}
		if a.rebinds != nil && len(args) > 0 {
			if node, moved := a.rebinds.boundTo(pod.UID); moved {
				args[len(args)-1] = node
			}
		}
	}
	if len(args) == 0 {
		note, args = "%s", []any{note}
	}
	a.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...)
}
