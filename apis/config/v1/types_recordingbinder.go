// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
}
