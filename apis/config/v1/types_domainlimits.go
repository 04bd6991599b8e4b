// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DomainLimitsArgs are the arguments of the plugin DomainLimits, which bounds the
// pods of a workload in one domain.
type DomainLimitsArgs struct {
	metav1.TypeMeta `json:",inline"`

	// defaultLimits are the limits of pods that have none of their own; they all
	// hold at once. What a pod says itself, in its annotation, replaces them as a
	// whole. Pods whose controller chooses their nodes, such as those of a
	// DaemonSet, have no other limits than their own. At most 16, no property twice.
	// Default: none.
	// +listType=atomic
	DefaultLimits []DomainLimit `json:"defaultLimits,omitempty"`
}

// DomainLimit is the most pods of one revision of a workload in one domain: the nodes
// that share a value of a property.
type DomainLimit struct {
	// property names what makes the domains: the key of a node label, such as
	// topology.kubernetes.io/zone, or node.name, which is every node by itself.
	// Docker's node.labels.KEY and engine.labels.KEY mean the node label KEY. No pod
	// with such a limit is placed on a node without the property.
	// Required.
	Property string `json:"property"`

	// maxPods is the most pods in one domain, 1 to 1000000. In a PlacementPolicy it is called max.
	// Required.
	MaxPods int64 `json:"maxPods"`
}
