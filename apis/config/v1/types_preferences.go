// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PreferencesArgs are the arguments of the plugin Preferences, which finds out
// over which topology levels a pod wants to be placed.
type PreferencesArgs struct {
	metav1.TypeMeta `json:",inline"`

	// defaultLevels are the topology levels of pods that ask for nothing, in
	// decreasing order of precedence: the first is made as even as the cluster
	// allows, then the second inside each of its domains, and so on. What a pod
	// asks for itself replaces them as a whole; the two are never merged.
	// At most 16, no key twice.
	// Default: topology.kubernetes.io/zone, then kubernetes.io/hostname. An empty list
	// spreads such pods over the nodes alone.
	// +listType=atomic
	DefaultLevels []Level `json:"defaultLevels,omitempty"`
}

// Level is one placement preference.
type Level struct {
	// strategy is Spread, which gives the next pod to the domain that has
	// fewest, or Pack, which gives it to the fullest domain that still has capacity.
	// Default: Spread.
	Strategy Strategy `json:"strategy,omitempty"`

	// topologyKey is the key of the node label whose values are the domains, such as
	// topology.kubernetes.io/zone, or kubernetes.io/hostname, which is every node by itself.
	// Required.
	TopologyKey string `json:"topologyKey"`

	// nodesWithoutKey says what becomes of nodes without the label. LastResort
	// puts pods on them only where no other node is as healthy and fits. OwnDomain
	// makes one domain of them, which gets the same share as any other. Exclude keeps
	// the pods off them, even if there is capacity nowhere else.
	// Default: LastResort.
	NodesWithoutKey NodesWithoutKey `json:"nodesWithoutKey,omitempty"`

	// share is Allocatable where each of the label's values is to get pods in proportion to what
	// the nodes that have it have of CPU. For Spread only, and not beside shares.
	// Default: none, all values have the same share, or as shares says.
	Share Share `json:"share,omitempty"`

	// shares gives shares to values of the label, 1 to 1000000 each: a domain
	// with twice the share gets twice the pods. For Spread only; at most 254, no value twice.
	// Default: none, all values have the same share.
	// +listType=atomic
	Shares []ValueShare `json:"shares,omitempty"`

	// unlistedShare is the share of all values together that shares does not list.
	// Default: none, each of them has a share of 1.
	UnlistedShare *int64 `json:"unlistedShare,omitempty"`

	// nodesWithoutKeyShare is the share of the nodes without the label, where they are OwnDomain.
	// Default: none, it is 1, or part of unlistedShare.
	NodesWithoutKeyShare *int64 `json:"nodesWithoutKeyShare,omitempty"`
}

// ValueShare is the share of one value.
type ValueShare struct {
	// value is the label's value.
	// Required.
	Value string `json:"value"`

	// share is how much of the pods the value gets, beside the shares of the other values.
	// Required.
	Share int64 `json:"share"`
}

// Share is where the shares of a level's values come from.
type Share string

// ShareAllocatable makes the share of a value what the nodes that have it have of CPU.
const ShareAllocatable Share = "Allocatable"

// Strategy is what a level does with its domains.
type Strategy string

const (
	// StrategySpread gives the next pod to the domain with the fewest pods.
	StrategySpread Strategy = "Spread"
	// StrategyPack gives the next pod to the fullest domain that still has capacity.
	StrategyPack Strategy = "Pack"
)

// NodesWithoutKey is what a level does with nodes without its label.
type NodesWithoutKey string

const (
	// NodesWithoutKeyLastResort puts pods on them only where no other node is as healthy and fits.
	NodesWithoutKeyLastResort NodesWithoutKey = "LastResort"
	// NodesWithoutKeyOwnDomain puts them together in one domain, which gets an equal share.
	NodesWithoutKeyOwnDomain NodesWithoutKey = "OwnDomain"
	// NodesWithoutKeyExclude keeps the pods off them.
	NodesWithoutKeyExclude NodesWithoutKey = "Exclude"
)
