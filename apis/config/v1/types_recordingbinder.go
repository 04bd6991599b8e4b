// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// RecordingBinderArgs are the arguments of the plugin RecordingBinder, which binds
// pods to their nodes.
type RecordingBinderArgs struct {
	metav1.TypeMeta `json:",inline"`

	// candidates is how many nodes a pod is bound to at most, one after the other, when bindings are refused because a node has no
	// room: see the controller's flag --arbiter. The next is the best that the tree has then, without those that have refused. After the last
	// the pod waits and is tried again, as after any other failure. 1 to 10; 1 tries no other node.
	// Default: 3.
	Candidates *int32 `json:"candidates,omitempty"`

	// scheduledEvents says which bound pods get the event Scheduled, which is one of the two writes that a pod costs. All is every pod,
	// Sampled one in ten by its UID, and Off none. That a pod could not be placed is always said.
	// Default: All.
	ScheduledEvents ScheduledEvents `json:"scheduledEvents,omitempty"`
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

// UnmarshalJSON takes false for Off: in YAML, Off without quotes is a boolean.
func (e *ScheduledEvents) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		*e = ScheduledEventsOff
		return nil
	}
	return json.Unmarshal(data, (*string)(e))
}
