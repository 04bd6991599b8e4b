// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FaultyNodeArgs are the arguments of the plugin FaultyNode, which puts the nodes
// last on which a workload keeps failing.
type FaultyNodeArgs struct {
	metav1.TypeMeta `json:",inline"`

	// threshold is how many failures of one revision of a workload within the window
	// make a node faulty for that revision: the last choice, never excluded. 1 to 1000.
	// A PlacementPolicy that governs the pod may say otherwise.
	// Default: 5.
	Threshold *int32 `json:"threshold,omitempty"`

	// windowSeconds is how long a failure is remembered, up to a day. A PlacementPolicy that governs the pod may say otherwise.
	// Default: 300.
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`

	// halfOpen lets only one unproven pod of a revision at a time onto a node, or into
	// a domain, where that revision has failed and not succeeded since.
	// Without it nothing happens below the threshold. A batch can lose as
	// many pods as it has before the first failure is seen.
	// Default: true.
	HalfOpen *bool `json:"halfOpen,omitempty"`

	// provenAfterSeconds is how long a pod has been Ready, without a failure, when it proves
	// that its node is good, at most an hour. A pod that has succeeded proves it at once.
	// Default: 10.
	ProvenAfterSeconds *int32 `json:"provenAfterSeconds,omitempty"`

	// ownErrors says who is to blame for an error that a revision shows on more than
	// half of the nodes that it was tried on, and on two at least. Forgive marks no
	// node for it: a bad image is the workload's own; nor for a revision that was tried
	// on one node only. Count marks them. Either way the next pods go where none has failed.
	// Default: Forgive.
	OwnErrors OwnErrors `json:"ownErrors,omitempty"`

	// record is where the history is kept for the next scheduler, beyond what the
	// pods in the API tell it.
	Record Record `json:"record,omitzero"`

	// suspects are the nodes on which several unrelated workloads fail at once. They
	// are reported by an Event, and named in the record, by which the controller taints them.
	Suspects Suspects `json:"suspects,omitzero"`
}

// OwnErrors says what becomes of errors that a revision shows on most of its nodes.
type OwnErrors string

const (
	// OwnErrorsForgive marks no node for them.
	OwnErrorsForgive OwnErrors = "Forgive"
	// OwnErrorsCount takes them for any other.
	OwnErrorsCount OwnErrors = "Count"
)

// Record is where the history is kept for the next scheduler: the ConfigMap
// SCHEDULERNAME-failures.
type Record struct {
	// enabled reports whether it is kept at all. Without it a scheduler that
	// starts knows what the pods and events in the API tell, and no more.
	// Default: true.
	Enabled *bool `json:"enabled,omitempty"`

	// namespace is that of the ConfigMap. The scheduler needs the right to get,
	// create and patch it there.
	// Default: kube-system.
	Namespace string `json:"namespace,omitempty"`
}

// Suspects are the nodes on which several unrelated workloads fail at once.
type Suspects struct {
	// workloads is how many workloads a node is faulty for when it is suspect, 2 to 1000.
	// Default: 3.
	Workloads *int32 `json:"workloads,omitempty"`
}
