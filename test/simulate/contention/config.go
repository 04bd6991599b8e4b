// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"fmt"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// Ties is which of several nodes that are equals a replica wants first.
type Ties string

// The orders of nodes that tie.
const (
	// ByName: the first by name, the same for all replicas.
	ByName Ties = "names"
	// ByHash: the first by a hash with the replica.
	ByHash Ties = "hashes"
)

// Config is what is played.
type Config struct {
	// Nodes is how many there are, in so many Groups (default 10), each with room for Slots pods (default 8).
	Nodes, Groups, Slots int
	// Fill is the share of all room that is taken when it begins, above 0 and below 1. For each pod that is bound another
	// one ends, so that it stays the same.
	Fill float64
	// Pods is how many are placed, by so many Replicas at once (default 4), each of which has its own.
	Pods, Replicas int
	// Candidates is m: to how many nodes a pod may be committed after one decision (default 1).
	Candidates int
	// Ties is for decisions by the tree: ByName by default.
	Ties Ties
	// SampledNodes is Np, and SampledGroups Cp (default all). Without Np all nodes are decided about, by the tree.
	SampledGroups, SampledNodes sampling.BasisPoints
	Strategy                    sampling.Strategy
	// Decide is how long a decision takes (default 1 ms), Send how long a commit or its answer is on its way (2 ms), and
	// Bind how long the commit itself takes, while no other of the node is checked (1 ms).
	Decide, Send, Bind time.Duration
	// Lag is how long it takes until a replica with a tree sees what others have bound (default 10 ms).
	Lag time.Duration
	// Failures is the share of bindings that fail for no reason of the node's, 0 to 1.
	Failures float64
	// Attempts is how often a pod is decided about before it is given up (default 10).
	Attempts int
	Seed     uint64
}

// Result is what came of it.
type Result struct {
	Bound, GivenUp int
	// Conflicts is how often a pod went back because all its candidates were refused.
	Conflicts int
	// Refused is how many commits were.
	Refused int
	// Unplaced is how often no node was found that seemed to fit.
	Unplaced int
	Took     time.Duration
}

// PerThousand is how many conflicts there are for a thousand pods.
func (r Result) PerThousand() float64 {
	return 1000 * float64(r.Conflicts) / float64(r.Bound+r.GivenUp)
}

// withDefaults returns the config with what it leaves out.
func (c Config) withDefaults() Config {
	set := func(value *int, otherwise int) {
		if *value == 0 {
			*value = otherwise
		}
	}
	last := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	set(&c.Groups, min(10, c.Nodes))
	set(&c.Slots, 8)
	set(&c.Replicas, 4)
	set(&c.Candidates, 1)
	set(&c.Attempts, 10)
	last(&c.Decide, time.Millisecond)
	last(&c.Send, 2*time.Millisecond)
	last(&c.Bind, time.Millisecond)
	last(&c.Lag, 10*time.Millisecond)
	if c.Ties == "" {
		c.Ties = ByName
	}
	if c.SampledGroups == 0 {
		c.SampledGroups = sampling.All
	}
	return c
}

// validate says what cannot be played, and what can.
func (c Config) validate() error {
	for _, is := range []struct {
		name    string
		value   any
		correct bool
		want    string
	}{
		{"nodes", c.Nodes, c.Nodes > 0, "1 or more"},
		{"groups", c.Groups, 1 <= c.Groups && c.Groups <= c.Nodes, "1 to as many as there are nodes"},
		{"slots", c.Slots, c.Slots > 0, "1 or more"},
		{"fill", c.Fill, 0 < c.Fill && c.Fill < 1, "more than 0 and less than 1"},
		{"pods", c.Pods, c.Pods > 0, "1 or more"},
		{"replicas", c.Replicas, c.Replicas > 0, "1 or more"},
		{"candidates", c.Candidates, c.Candidates > 0, "1 or more"},
		{"ties", c.Ties, c.Ties == ByName || c.Ties == ByHash, "names or hashes"},
		{"Cp in basis points", c.SampledGroups, c.SampledGroups.Valid(), "1 to 10000"},
		{"Np in basis points", c.SampledNodes, c.SampledNodes == 0 || c.SampledNodes.Valid(), "1 to 10000, or 0 for all nodes"},
		{"strategy", c.Strategy, c.Strategy == "" || c.Strategy == sampling.Random || c.Strategy == sampling.RoundRobin, "Random or RoundRobin"},
		{"decide", c.Decide, c.Decide > 0, "a duration above 0"},
		{"send", c.Send, c.Send > 0, "a duration above 0"},
		{"bind", c.Bind, c.Bind > 0, "a duration above 0"},
		{"lag", c.Lag, c.Lag > 0, "a duration above 0"},
		{"failures", c.Failures, 0 <= c.Failures && c.Failures < 1, "0 or more and less than 1"},
		{"attempts", c.Attempts, c.Attempts > 0, "1 or more"},
	} {
		if !is.correct {
			return fmt.Errorf("%s: %v cannot be played: give %s", is.name, is.value, is.want)
		}
	}
	return nil
}
