// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Allocation reserves a part of a partition for some pods. What they leave unused of it others may use, its siblings first.
//
// It orders pods, and is no quota: pods beyond the reservation run where there is capacity, and are the first to leave. A pod is of
// one allocation: of several that claim it, the oldest.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=espalier
// +kubebuilder:printcolumn:name="Partition",type=string,JSONPath=`.spec.partition`
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name="Used %",type=integer,JSONPath=`.status.utilizationPercent`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.runningPods`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waitingPods`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Allocation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec AllocationSpec `json:"spec,omitzero"`

	// status is what has come of it. Espalier's controller writes it; schedulers never read it.
	// +optional
	Status AllocationStatus `json:"status,omitzero"`
}

// AllocationSpec is what an allocation wants.
//
// +kubebuilder:validation:XValidation:rule="has(self.partition) || has(self.parent)",message="name a partition, or a parent whose partition it is"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUtilizationPercent) || has(self.reserved)",message="maxUtilizationPercent is of what is reserved: reserve something"
type AllocationSpec struct {
	// partition is the name of the one whose capacity is reserved. A child has that of its parent, and need not say so.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Partition string `json:"partition,omitempty"`

	// parent is the name of the allocation that this one is below.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Parent string `json:"parent,omitempty"`

	// reserved is how much of each resource is for its own pods. What its children reserve comes to that. Pods are within the
	// reservation as long as they are for all resources that any allocation of the partition reserves. A resource that no node of the
	// partition has does not count.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Reserved corev1.ResourceList `json:"reserved,omitempty"`

	// rank is that of its pods; lower ones come first, before anything else is compared.
	// +optional
	// +default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Rank *int32 `json:"rank,omitempty"`

	// rankAdjustment is by how much the rank is less within the reservation.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RankAdjustment *int32 `json:"rankAdjustment,omitempty"`

	// maxUtilizationPercent is up to how much of what is reserved its own pods may run, in percent. Pods beyond it wait, and those that
	// run are evicted. Pods of priority 0 do not run at all then. Without it, all may run for which there is capacity.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxUtilizationPercent *int32 `json:"maxUtilizationPercent,omitempty"`

	// traits are labels that nodes must have to run its pods.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Traits map[string]string `json:"traits,omitempty"`

	// assignments say which pods are its own, of those that one of Espalier's schedulers places. The first that selects a pod gives
	// it its priority. Pods of a DaemonSet, and those that are critical to the system, are of no allocation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Assignments []Assignment `json:"assignments,omitempty"`

	// identityGroups are groups of its pods of which so many are to run. A pod is of the one that its label
	// espalier.dev/identity-group names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	IdentityGroups []IdentityGroup `json:"identityGroups,omitempty"`
}

// Assignment says which pods are of an allocation.
type Assignment struct {
	// namespaceSelector selects namespaces by their labels. An empty selector selects all of them.
	// +required
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	// podSelector selects pods of these namespaces. Without one, all are selected.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// priority is that of the pods among those of the allocation, 100 for those that matter most. It may be changed while pods
	// run. Those of priority 0 are the last of the whole partition, and run where nobody else needs the capacity. The annotation
	// espalier.dev/allocation-priority of a pod comes before it.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Priority *int32 `json:"priority,omitempty"`
}

// IdentityGroup is pods of which so many are to run, each with a number of its own. The others stand by.
type IdentityGroup struct {
	// name is what the label of the pods names.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// count is how many are to run. Their numbers are from 0 up to one less. A running pod whose number is beyond it is evicted.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Count *int32 `json:"count,omitempty"`
}

// AllocationStatus is what has come of an allocation.
type AllocationStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// used is what its own running pods request, of the resources that the partition's allocations reserve.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// utilizationPercent is how much of what is reserved its own running pods request, in percent, of the resource of which that is most.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UtilizationPercent *int32 `json:"utilizationPercent,omitempty"`

	// runningPods is how many of its own pods run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunningPods *int32 `json:"runningPods,omitempty"`

	// waitingPods is how many of its own pods wait.
	// +optional
	// +kubebuilder:validation:Minimum=0
	WaitingPods *int32 `json:"waitingPods,omitempty"`

	// reservedPods is how many of its own pods are within the reservation, running or not.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReservedPods *int32 `json:"reservedPods,omitempty"`

	// firstPosition is the position of the first of its own pods in the order of the partition, which begins with 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	FirstPosition *int32 `json:"firstPosition,omitempty"`

	// lastPosition is the position of the last of its own pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	LastPosition *int32 `json:"lastPosition,omitempty"`

	// beyond are some of its own running pods that are beyond the reservation. The one that would be the first to leave comes first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Beyond []PodAtPosition `json:"beyond,omitempty"`

	// next is the first of its own pods that wait, and why it does.
	// +optional
	Next *WaitingPod `json:"next,omitempty"`

	// conditions are Accepted and Conflicted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodAtPosition is a pod in the order of its partition.
type PodAtPosition struct {
	// namespace is that of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is that of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// position is the pod's, of which the first is 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Position int32 `json:"position,omitempty"`
}

// WaitingPod is a pod that waits.
//
// +kubebuilder:validation:MinProperties=1
type WaitingPod struct {
	PodAtPosition `json:",inline"`

	// message says why it waits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// AllocationList is a list of allocations.
//
// +kubebuilder:object:root=true
type AllocationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Allocation `json:"items"`
}
