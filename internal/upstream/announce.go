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

// Announce has the profiles of a scheduler that is not running yet name the right node in the event Scheduled, where a pod was bound to another
// one than its cycle knows of. It is for after Rebind.
func Announce(profiles profile.Map) {
	for name, f := range profiles {
		if rebinds, is := f.(*rebindingFramework); is {
			profiles[name] = &announcingFramework{f, announcer{f.EventRecorder(), rebinds}}
		}
	}
}

// announcingFramework is a profile whose events go through an announcer.
type announcingFramework struct {
	framework.Framework
	announcer announcer
}

// EventRecorder returns the announcer.
func (f *announcingFramework) EventRecorder() events.EventRecorderLogger { return f.announcer }

// announcer writes events.
type announcer struct {
	events.EventRecorderLogger
	// rebinds knows which pods were bound to other nodes.
	rebinds *rebindingFramework
}

// WithLogger returns an announcer that logs as it is told.
func (a announcer) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	a.EventRecorderLogger = a.EventRecorderLogger.WithLogger(logger)
	return a
}

// Eventf writes an event. The node is the last argument of the one that says where a pod was bound.
func (a announcer) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if pod, is := regarding.(*corev1.Pod); is && reason == scheduled && len(args) > 0 {
		if node, moved := a.rebinds.boundTo(pod.UID); moved {
			args[len(args)-1] = node
		}
	}
	a.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...)
}
