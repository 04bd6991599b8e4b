// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint is one condition on a node, in the language of Docker's
// placement constraints: node.labels.disk == ssd.
//
// A pod's constraints must all hold. Values are compared as whole words and without
// regard to case; the characters that look like patterns are only characters. What
// a node does not have is the empty text, which no value equals: "==" fails, "!=" holds.
package constraint

import (
	"net/netip"

	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Operator is how a constraint compares.
type Operator string

const (
	// Equal holds where the value, or one of several, is the constraint's.
	Equal Operator = "=="
	// NotEqual holds where Equal does not.
	NotEqual Operator = "!="
)

// Key is the property of a node that a constraint is about.
type Key string

const (
	// ID is what tells a node from one of the same name that came later.
	ID Key = "node.id"
	// Name is the node's name, which Docker has no key for.
	Name Key = "node.name"
	// Hostname is the node's host name.
	Hostname Key = "node.hostname"
	// IP is the node's addresses; the value is an address or a range in CIDR notation.
	IP Key = "node.ip"
	// Role is Manager or Worker.
	Role Key = "node.role"
	// OS is the node's operating system.
	OS Key = "node.platform.os"
	// Arch is the node's architecture, x86_64 being amd64 and aarch64 arm64.
	Arch Key = "node.platform.arch"
	// Label is a label of the node; Constraint.Label says which.
	Label Key = "node.labels."
)

// The two values of Role.
const (
	Manager = "manager"
	Worker  = "worker"
)

// MaxConstraints bounds the constraints of one pod.
const MaxConstraints = 64

// Constraint is one condition. Those that Parse returns are in canonical form.
type Constraint struct {
	Key Key
	// Label is the label's key where Key is Label, and "" elsewhere.
	Label    string
	Operator Operator
	// Value is never empty.
	Value string
	// Range is what Value says where Key is IP, and not valid elsewhere. A single
	// address is the range that holds it alone.
	Range netip.Prefix
}

// Node is what constraints read of a node.
type Node struct {
	ID, Name, Hostname, OS, Arch string
	Manager                      bool
	Labels                       map[string]string
	// Addresses are IP addresses as text. What is none is no address.
	Addresses []string
}

// Hold reports whether all constraints hold for a node.
func Hold(constraints []Constraint, n *Node) bool {
	for i := range constraints {
		if !constraints[i].Holds(n) {
			return false
		}
	}
	return true
}

// About reports whether some constraint is about a property.
func About(constraints []Constraint, key Key) bool {
	for i := range constraints {
		if constraints[i].Key == key {
			return true
		}
	}
	return false
}

// Holds reports whether the constraint holds for a node.
func (c *Constraint) Holds(n *Node) bool {
	return c.equals(n) == (c.Operator == Equal)
}

func (c *Constraint) equals(n *Node) bool {
	switch c.Key {
	case ID:
		return syntax.SameWord(n.ID, c.Value)
	case Name:
		return syntax.SameWord(n.Name, c.Value)
	case Hostname:
		return syntax.SameWord(n.Hostname, c.Value)
	case Role:
		return n.Manager == (c.Value == Manager)
	case OS:
		return syntax.SameWord(n.OS, c.Value)
	case Arch:
		return syntax.SameWord(platform.Architecture(n.Arch), c.Value)
	case IP:
		return c.inRange(n.Addresses)
	default:
		return syntax.SameWord(n.Labels[c.Label], c.Value)
	}
}

// inRange reports whether one of the addresses is in the range. A node has several
// where it has an inner and an outer one, or speaks both versions of the protocol.
func (c *Constraint) inRange(addresses []string) bool {
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil && c.Range.Contains(a.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}
