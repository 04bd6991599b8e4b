// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Room is how many of the service's new tasks SwarmKit's filters allow on the node:
// its pipeline, said for one node and a whole batch. It shares nothing with our
// filters and is a third opinion beside them and SwarmKit itself.
func (c *Cluster) Room(n *Node) int {
	s := &c.Service
	if n.State != Active || !allows(s.Constraints, n) || !runs(s.Platforms, n.Platform) {
		return 0
	}
	room := int64(math.MaxInt32)
	old := int64(n.Running + n.Older)
	if s.CPU > 0 {
		room = min(room, n.CPU/s.CPU-old)
	}
	if s.Memory > 0 {
		room = min(room, n.Memory/s.Memory-old)
	}
	if s.MaxPerNode > 0 {
		room = min(room, int64(s.MaxPerNode)-old)
	}
	if len(s.Ports) > 0 {
		room = min(room, 1-old)
	}
	if slices.ContainsFunc(s.Ports, func(p Port) bool { return slices.Contains(n.Taken, p) }) {
		room = 0
	}
	return int(max(0, room))
}

// allows reads the constraints that are generated here; all must hold, and what a
// node lacks equals nothing. It knows nothing of the rest of the language, and says
// so loudly.
func allows(constraints []string, n *Node) bool {
	for _, c := range constraints {
		key, value, equal := strings.Cut(c, "==")
		if !equal {
			key, value, _ = strings.Cut(c, "!=")
		}
		if has := strings.EqualFold(n.property(strings.TrimSpace(key)), strings.TrimSpace(value)); has != equal {
			return false
		}
	}
	return true
}

// property is read in any case but for a label's key.
func (n *Node) property(key string) string {
	const labels = "node.labels."
	switch lower := strings.ToLower(key); {
	case lower == "node.id", lower == "node.hostname":
		return n.Name
	case lower == "node.platform.os":
		return n.Platform.OS
	case lower == "node.platform.arch":
		return n.Platform.Arch
	case strings.HasPrefix(lower, labels):
		return n.Labels[key[len(labels):]]
	}
	panic(fmt.Sprintf("constraint over %q: nothing is known of it", key))
}

// runs says whether the node's platform is one of those, any if there are none.
func runs(platforms []Platform, on Platform) bool {
	name := strings.NewReplacer("x86_64", "amd64", "aarch64", "arm64")
	return len(platforms) == 0 || on != Platform{} && slices.ContainsFunc(platforms, func(p Platform) bool {
		return (p.OS == "" || p.OS == on.OS) && (p.Arch == "" || name.Replace(p.Arch) == name.Replace(on.Arch))
	})
}
