// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Partition is a part of a cluster's nodes, whose capacity allocations share. All pods of its allocations are in one order: those
// within a reservation come first, and where capacity is short the last ones leave.
//
// A node that two partitions select is of the older one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=espalier
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.runningPods`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waitingPods`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Overcommitted",type=string,JSONPath=`.status.conditions[?(@.type=="Overcommitted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Partition struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec PartitionSpec `json:"spec,omitzero"`

	// status is what has come of it. Espalier's controller writes it; schedulers never read it.
	// +optional
	Status PartitionStatus `json:"status,omitzero"`
}

// PartitionSpec is what a partition is.
type PartitionSpec struct {
	// nodeSelector selects the nodes by their labels. An empty selector selects all of them.
	// +required
	NodeSelector metav1.LabelSelector `json:"nodeSelector"`

	// namespaceSelector selects the namespaces whose pods may be of its allocations, by their labels. Without one, those of all may.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// reservablePercent is how much of what its nodes have its allocations may reserve together, in percent. If they reserve more the
	// condition Overcommitted is True, and everything goes on.
	// +optional
	// +default=75
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ReservablePercent int32 `json:"reservablePercent,omitempty"`

	// maxLeaseSeconds is the longest lease that a pod of its allocations may have by its annotation espalier.dev/lease. One with a longer
	// lease waits. Without it, any may. It does not bound deadlines that count as leases.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxLeaseSeconds *int64 `json:"maxLeaseSeconds,omitempty"`

	// rankBy says whose rank a pod has. With Allocation it has that of its own allocation at all levels. With Level each allocation
	// above gives all pods below it its own rank, by its own reservation.
	// +optional
	// +default="Allocation"
	RankBy RankBy `json:"rankBy,omitempty"`
}

// RankBy is whose rank a pod has.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Allocation;Level
type RankBy string

// Whose rank a pod has.
const (
	RankByAllocation RankBy = "Allocation"
	RankByLevel      RankBy = "Level"
)

// PartitionStatus is what has come of a partition.
type PartitionStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is how many nodes it has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// capacity is what its nodes have, of the resources that its allocations reserve.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// reserved is what its allocations reserve together.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`

	// runningPods and waitingPods are those of its allocations.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunningPods *int32 `json:"runningPods,omitempty"`

	// waitingPods is beside runningPods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	WaitingPods *int32 `json:"waitingPods,omitempty"`

	// conditions are Accepted, Conflicted and Overcommitted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionOvercommitted is True if the allocations of a partition reserve more than it lets them.
const ConditionOvercommitted = "Overcommitted"

// Reasons of conditions of partitions and allocations, beside those of policies.
const (
	ReasonWithinFraction    = "WithinFraction"
	ReasonBeyondFraction    = "BeyondFraction"
	ReasonSharedNodes       = "SharedNodes"
	ReasonSharedPods        = "SharedPods"
	ReasonParentCycle       = "ParentCycle"
	ReasonParentMissing     = "ParentMissing"
	ReasonParentNotAccepted = "ParentNotAccepted"
	ReasonPartitionMismatch = "PartitionMismatch"
	ReasonPartitionMissing  = "PartitionMissing"
)

// PartitionList is a list of partitions.
//
// +kubebuilder:object:root=true
type PartitionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Partition `json:"items"`
}
