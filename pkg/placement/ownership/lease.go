// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"time"
)

// Lease is one of the Leases that replicas hold, as it was listed.
type Lease struct {
	// Name is that of the member: workloads are divided by it. So a replica that takes the Lease
	// of one that is gone takes its share.
	Name string
	// Holder is the identity of the replica, "" if the Lease was given back. No two processes
	// have the same one.
	Holder string
	// Renewed is when its holder has renewed it last, by the clock of the holder. It is compared with
	// another one of the same holder, and never with our clock. See Vacant.
	Renewed time.Time
	// Duration is how long it lasts from there.
	Duration time.Duration
	// Acknowledges are the holders that its holder has seen, and begins no bindings of.
	Acknowledges []string
	// Leads says that its holder is none of several, and places the pods of all workloads.
	Leads bool
}

// Vacant returns which of some Leases a replica should try to take: the one that it holds by a write of which the answer was lost,
// or else it would hold two; the first that was never held, or that was given back; else the one that was renewed longest ago,
// of which the holder may be gone. There must be a name.
//
// Here alone the clocks of several holders are compared. One that is late has its Lease asked for first, in vain, until
// the others have been gone for longer than that.
func Vacant(names []string, leases []Lease, holder string) string {
	held := make(map[string]Lease, len(leases))
	for _, l := range leases {
		if l.Holder == holder && slices.Contains(names, l.Name) {
			return l.Name
		}
		if l.Holder != "" {
			held[l.Name] = l
		}
	}
	return slices.MinFunc(names, func(a, b string) int { return held[a].Renewed.Compare(held[b].Renewed) })
}
