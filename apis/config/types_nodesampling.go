// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SamplingStrategy is how nodes are drawn.
type SamplingStrategy string

// The strategies.
const (
	SamplingRandom     SamplingStrategy = "Random"
	SamplingRoundRobin SamplingStrategy = "RoundRobin"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeSamplingArgs are the arguments of the plugin NodeSampling, which has pods on the full path decided about by a sample
// of the nodes.
type NodeSamplingArgs struct {
	metav1.TypeMeta

	// TopologyKey is the node label by whose values nodes are grouped.
	TopologyKey string
	// GroupsBasisPoints is the share of groups that are in a sample.
	GroupsBasisPoints int32
	// NodesBasisPoints is the share of the nodes of each of these.
	NodesBasisPoints int32
	// Strategy is how nodes are drawn.
	Strategy SamplingStrategy
	// TimeoutMilliseconds bounds how long filters are asked for one sample.
	TimeoutMilliseconds int32
}
