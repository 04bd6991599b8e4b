// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FaultyNodeArgs are the arguments of the plugin FaultyNode, which puts the nodes
// last on which a workload keeps failing.
type FaultyNodeArgs struct {
	metav1.TypeMeta

	// Threshold is how many failures within the window make a node faulty.
	Threshold int32
	// WindowSeconds is how long a failure is remembered.
	WindowSeconds int32
	// HalfOpen lets one unproven pod at a time onto a node that is not yet, or no
	// longer, faulty and on which only failures are known.
	HalfOpen bool
	// ProvenAfterSeconds is how long a pod has been Ready when it proves its node.
	ProvenAfterSeconds int32
	// OwnErrors says what becomes of errors that a revision shows on most nodes.
	OwnErrors OwnErrors
	// Record is where the history is kept for the next scheduler.
	Record Record
	// Suspects are the nodes on which several workloads fail.
	Suspects Suspects
}

// OwnErrors says what becomes of errors that a revision shows on most of its nodes.
type OwnErrors string

const (
	// OwnErrorsForgive marks no node for them.
	OwnErrorsForgive OwnErrors = "Forgive"
	// OwnErrorsCount takes them for any other.
	OwnErrorsCount OwnErrors = "Count"
)

// Record is where the history is kept for the next scheduler.
type Record struct {
	// Enabled reports whether it is kept at all.
	Enabled bool
	// Namespace is that of the ConfigMap.
	Namespace string
}

// Suspects are the nodes on which several unrelated workloads fail.
type Suspects struct {
	// Workloads is how many of them make a node suspect.
	Workloads int32
}
