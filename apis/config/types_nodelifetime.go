// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLifetimeArgs are the arguments of the plugin NodeLifetime, which keeps pods off
// the nodes that end before their leases do.
type NodeLifetimeArgs struct {
	metav1.TypeMeta

	// Leases says what a lease is.
	Leases Leases
}

// Leases says what a lease is.
type Leases string

const (
	// LeasesDisabled has nothing be a lease.
	LeasesDisabled Leases = "Disabled"
	// LeasesAnnotations has the annotations of pods be leases.
	LeasesAnnotations Leases = "Annotations"
	// LeasesAnnotationsAndDeadlines takes the deadline of a pod without an annotation for one, or that of its Job.
	LeasesAnnotationsAndDeadlines Leases = "AnnotationsAndDeadlines"
)
