// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostport is the ports of a node that are not to be given to pods, the
// rule by which a pod's port conflicts with them, and the syntax in which people
// write them.
//
// The rule is that of Kubernetes: two ports conflict if protocol and number are the
// same, and the addresses are the same or one of them is every address.
package hostport

import (
	"cmp"
	"net/netip"
	"slices"
)

// Protocol is what speaks on a port.
type Protocol string

// The protocols that have ports.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	SCTP Protocol = "sctp"
)

// protocols is all of them, in the order in which messages name them.
var protocols = []Protocol{TCP, UDP, SCTP}

// Port is one port of a node.
type Port struct {
	// Address is where it is bound; the zero Addr is every address of the node.
	Address  netip.Addr
	Protocol Protocol
	Number   uint16
}

// Range is the ports from First to Last.
type Range struct {
	// Address is as in Port.
	Address  netip.Addr
	Protocol Protocol
	// First is at least 1 and at most Last.
	First, Last uint16
}

// Set is ports, sorted by Compare, each range once. Ranges may overlap: people
// write down what they know of a node, and two lines may be about one port.
type Set []Range

// MaxRanges bounds a set. Each is looked at for every port of every pod.
const MaxRanges = 256

// Conflicts reports whether some port of the set is the same port as p.
func (s Set) Conflicts(p Port) bool {
	return slices.ContainsFunc(s, func(r Range) bool {
		return r.Protocol == p.Protocol && r.First <= p.Number && p.Number <= r.Last && meet(r.Address, p.Address)
	})
}

// Conflicts reports whether two pods cannot be on one node if each has one of the ports.
func (p Port) Conflicts(other Port) bool { return Set{other.asRange()}.Conflicts(p) }

// meet reports whether a socket at one address is in the way of one at the other.
func meet(a, b netip.Addr) bool { return !a.IsValid() || !b.IsValid() || a == b }

// Address is the canonical form of an address: an IPv4 address in IPv6's clothes is
// the IPv4 address, and the unspecified address of either family is every address. For
// :: that is more than Kubernetes says of it, and what Linux does with such a socket.
func Address(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// Compare orders ranges by number, then protocol, then address.
func (r Range) Compare(other Range) int {
	return cmp.Or(
		cmp.Compare(r.First, other.First),
		cmp.Compare(r.Last, other.Last),
		cmp.Compare(r.Protocol, other.Protocol),
		r.Address.Compare(other.Address),
	)
}

// Compare orders ports as ranges are ordered.
func (p Port) Compare(other Port) int { return p.asRange().Compare(other.asRange()) }

func (p Port) asRange() Range {
	return Range{Address: p.Address, Protocol: p.Protocol, First: p.Number, Last: p.Number}
}

// sorted puts ranges into the order of a set, and drops repetitions.
func sorted(ranges []Range) Set {
	slices.SortFunc(ranges, Range.Compare)
	return slices.Compact(ranges)
}

// Union is the ports of both sets. It may be longer than MaxRanges.
func (s Set) Union(other Set) Set { return sorted(slices.Concat(s, other)) }
