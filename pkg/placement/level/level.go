// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package level is one placement preference, and the syntax in which people write it.
//
// A workload's levels are listed in decreasing order of precedence (seed
// "Topology aware scheduling"): the tree spreads or packs over the first, inside
// each of its branches over the second, and so on.
package level

import (
	"slices"
	"strings"
)

// Strategy is what a level does with its branches.
type Strategy string

const (
	// Spread gives the next pod to the branch that is lowest.
	Spread Strategy = "spread"
	// Pack gives the next pod to the fullest branch that still has room.
	Pack Strategy = "pack"
)

// NodesWithoutKey is what a level does with nodes that lack its property.
type NodesWithoutKey string

const (
	// LastResort puts them together in a branch that comes after all others, whatever counts on them.
	// It is what the stock scheduler does with nodes that lack the key of a ScheduleAnyway constraint.
	LastResort NodesWithoutKey = "LastResort"
	// OwnDomain puts them together in the branch "", which gets an equal share:
	// the rule of the seeds, and the default of the syntax.
	OwnDomain NodesWithoutKey = "OwnDomain"
	// Exclude keeps the workload off them.
	Exclude NodesWithoutKey = "Exclude"
)

// Share is where the shares of a level's values come from.
type Share string

// Allocatable makes the share of a value what the nodes that have it have of CPU, whether a pod fits on them or not.
const Allocatable Share = "Allocatable"

// Others is the value that stands for all values without a weight of their own.
// As a weight it makes one virtual branch of them, inside which they are spread evenly.
const Others = "*"

// NodeName is the property that every node has: its name.
const NodeName = "node.name"

// Level is one placement preference.
type Level struct {
	Strategy Strategy
	// Property is NodeName, or the key of a node label as it stands on the node.
	Property        Property
	NodesWithoutKey NodesWithoutKey
	// Share says where the shares of values come from, if not from Weights. Only a Spread level has it.
	Share Share
	// Weights gives shares to values, sorted by Value, each value once. Without
	// any, all values weigh the same. Where there are some but none for Others,
	// a value that is not listed weighs 1. Only a Spread level has weights.
	Weights []Weight
}

// Weight is the share of one value.
type Weight struct {
	// Value is the property's value, Others, or "" for nodes without it. These have no weight but where
	// they are OwnDomain.
	Value string
	// Share is at least 1 and at most MaxShare.
	Share int64
}

// Weights returns the weights of listed values, of all others together, and of nodes without the property, where these are not
// nil, in the order in which a level has them.
func Weights(listed []Weight, others, withoutKey *int64) []Weight {
	all := slices.Clone(listed)
	for value, share := range map[string]*int64{Others: others, "": withoutKey} {
		if share != nil {
			all = append(all, Weight{Value: value, Share: *share})
		}
	}
	slices.SortStableFunc(all, func(a, b Weight) int { return strings.Compare(a.Value, b.Value) })
	return all
}

const (
	// MaxLevels bounds the levels of one workload.
	MaxLevels = 16
	// MaxShare bounds a weight, so that shares can be compared without overflow.
	MaxShare = 1_000_000
	// MaxWeights bounds the weights of one level.
	MaxWeights = 256
)

// Property is a node property that a level may name: NodeName or a label key.
type Property struct {
	// Label is the label's key; "" is the node's name.
	Label string
}

// IsHost reports whether a branch over the property is one node.
func (p Property) IsHost() bool { return p.Label == "" || p.Label == "kubernetes.io/hostname" }
