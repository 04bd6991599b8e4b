// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SamplingStrategy is how nodes are drawn.
// +enum
type SamplingStrategy string

// The strategies.
const (
	// Random draws any nodes of a group.
	SamplingRandom SamplingStrategy = "Random"
	// RoundRobin draws the nodes that follow those of the pod before. Pods of a workload that come in a rhythm can be shown
	// the same nodes again and again.
	SamplingRoundRobin SamplingStrategy = "RoundRobin"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// NodeSamplingArgs are the arguments of the plugin NodeSampling. Pods that take the full path are decided about by a sample
// of the nodes: some of the groups, and of each of these some nodes that fit. If none of a sample fits, all nodes are
// looked at.
type NodeSamplingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// topologyKey is the node label by whose values nodes are grouped. Nodes without it are a group too.
	// Default: topology.kubernetes.io/zone.
	TopologyKey string `json:"topologyKey,omitempty"`

	// groupsBasisPoints is the share of groups that are in a sample, in hundredths of a percent, rounded up: 1 to
	// 10000. With less than all, zones that tie for a pod may be left out.
	// Default: 10000.
	GroupsBasisPoints *int32 `json:"groupsBasisPoints,omitempty"`

	// nodesBasisPoints is the share of the nodes of each of these groups that are looked for, in hundredths of a percent,
	// rounded down, and at least one node: 1 to 10000.
	// Default: 1000, which is a tenth.
	NodesBasisPoints *int32 `json:"nodesBasisPoints,omitempty"`

	// strategy is how nodes are drawn: Random or RoundRobin.
	// Default: Random.
	Strategy SamplingStrategy `json:"strategy,omitempty"`

	// timeoutMilliseconds bounds how long filters are asked for one sample, 1 to 10000. What has been found by then is
	// the sample.
	// Default: 100.
	TimeoutMilliseconds *int32 `json:"timeoutMilliseconds,omitempty"`
}
