// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DomainLimitsArgs are the arguments of the plugin DomainLimits, which bounds the
// pods of a workload in one domain.
type DomainLimitsArgs struct {
	metav1.TypeMeta `json:",inline"`

	// defaultLimits are the limits of pods that have none of their own; they all
	// hold at once. What a pod says itself, in its annotation, replaces them as a
	// whole. Pods whose controller chooses their nodes, such as those of a
	// DaemonSet, have no other limits than their own. At most 16, no key twice.
	// Default: none.
	// +listType=atomic
	DefaultLimits []DomainLimit `json:"defaultLimits,omitempty"`
}

// DomainLimit is the most pods of one revision of a workload in one domain: the nodes
// that share a value of a label.
type DomainLimit struct {
	// topologyKey is the key of the node label whose values are the domains, such as
	// topology.kubernetes.io/zone, or kubernetes.io/hostname, which is every node by itself. No pod
	// with such a limit is placed on a node without the label.
	// Required.
	TopologyKey string `json:"topologyKey"`

	// maxPods is the most pods in one domain, 1 to 1000000.
	// Required.
	MaxPods int64 `json:"maxPods"`
}
