// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterPlacementPolicy says how the pods that it selects are placed, in all namespaces that it selects. It is for who runs
// the cluster, as a PlacementPolicy is for who uses a namespace.
//
// One whose mode is Override comes before what pods say themselves and before any PlacementPolicy. One whose mode is Default
// comes after both, and before the levels and limits of the profile. Among those of one mode, the order is that of PlacementPolicies.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cplp,categories=espalier
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Governed",type=integer,JSONPath=`.status.governedPods`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selectedPods`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Conflicted",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec ClusterPlacementPolicySpec `json:"spec,omitzero"`

	// status is what has come of it. Espalier's controller writes it; schedulers never read it.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitzero"`
}

// ClusterPlacementPolicySpec is what a policy of the cluster wants.
type ClusterPlacementPolicySpec struct {
	// namespaceSelector selects namespaces by their labels. An empty selector selects all of them.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="operators are In and NotIn with values, and Exists and DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label's value has 63 characters at most, and its key 317: no namespace has a longer one"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	PlacementPolicySpec `json:",inline"`
}

// ClusterPlacementPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type ClusterPlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPlacementPolicy `json:"items"`
}
