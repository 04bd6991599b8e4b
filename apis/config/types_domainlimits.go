// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DomainLimitsArgs are the arguments of the plugin DomainLimits, which bounds the
// pods of a workload in one domain.
type DomainLimitsArgs struct {
	metav1.TypeMeta

	// DefaultLimits are the limits of pods that have none of their own.
	DefaultLimits []DomainLimit
}

// DomainLimit is the most pods of one revision of a workload in one domain: the nodes
// that share a value of a label.
type DomainLimit struct {
	TopologyKey string
	MaxPods     int64
}
