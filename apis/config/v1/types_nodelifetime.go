// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLifetimeArgs are the arguments of the plugin NodeLifetime, which keeps pods off
// the nodes that end before their leases do.
type NodeLifetimeArgs struct {
	metav1.TypeMeta `json:",inline"`

	// leases says what a lease is. A pod that has one is kept off the nodes that end before it would
	// be over: the end of a node is its annotation espalier.dev/valid-until. When the lease ends is written into
	// the pod. Annotations has the annotation espalier.dev/lease of a pod be its lease.
	// AnnotationsAndDeadlines takes activeDeadlineSeconds of a pod that has none for its lease, or
	// that of its Job, and needs the right to list and watch Jobs. Disabled has nothing be a lease, and
	// costs nothing.
	// Default: Disabled.
	Leases Leases `json:"leases,omitempty"`
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
