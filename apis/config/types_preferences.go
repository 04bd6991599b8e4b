// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PreferencesArgs are the arguments of the plugin Preferences, which finds out
// over which topology levels a pod wants to be placed.
type PreferencesArgs struct {
	metav1.TypeMeta

	// DefaultLevels are the levels of pods that ask for nothing, first level
	// first. Empty spreads them over the nodes alone.
	DefaultLevels []Level
}

// Level is one placement preference.
type Level struct {
	Strategy        Strategy
	TopologyKey     string
	NodesWithoutKey NodesWithoutKey
	Share           Share
	Shares          []ValueShare
	// UnlistedShare and NodesWithoutKeyShare are nil where nothing is said of them.
	UnlistedShare        *int64
	NodesWithoutKeyShare *int64
}

// ValueShare is the share of one value.
type ValueShare struct {
	Value string
	Share int64
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
