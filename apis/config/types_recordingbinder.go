// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RecordingBinderArgs are the arguments of the plugin RecordingBinder, which binds
// pods to their nodes.
type RecordingBinderArgs struct {
	metav1.TypeMeta

	// Candidates is how many nodes a pod is bound to at most, one after the other, when bindings are refused.
	Candidates int32
	// ScheduledEvents says which bound pods get the event Scheduled.
	ScheduledEvents ScheduledEvents
}

// ScheduledEvents says which bound pods get the event Scheduled.
type ScheduledEvents string

const (
	// ScheduledEventsAll is all of them.
	ScheduledEventsAll ScheduledEvents = "All"
	// ScheduledEventsSampled is one in ten.
	ScheduledEventsSampled ScheduledEvents = "Sampled"
	// ScheduledEventsOff is none.
	ScheduledEventsOff ScheduledEvents = "Off"
)
