// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Generate draws a cluster. The same seed gives the same cluster.
//
// Values and counts are drawn from few, so that branches are shared, tie and fill
// up; most clusters are small, because whatever goes wrong can go wrong on five nodes.
func Generate(seed uint64) *Cluster {
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	c := &Cluster{Service: g.service()}
	nodes := 1 + g.IntN(9)
	if g.oneIn(8) {
		nodes = 1 + g.IntN(60)
	}
	// Few clusters have nodes that fail, because SwarmKit waits for 50 ms in each.
	failing := g.oneIn(6)
	most := g.IntN(5)
	for i := range nodes {
		c.Nodes = append(c.Nodes, g.node(fmt.Sprintf("node-%02d", i), &c.Service, most, failing))
	}
	return c
}

type generator struct{ *rand.Rand }

func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func (g generator) service() Service {
	s := Service{Tasks: 1 + g.IntN(12), Unversioned: g.oneIn(5)}
	if g.oneIn(6) {
		s.Tasks = 1 + g.IntN(60)
	}
	s.Labels = []string{"az", "row", "rack"}[:g.IntN(4)]
	if g.oneIn(2) {
		s.CPU = 1 + g.Int64N(3)
	}
	if g.oneIn(3) {
		s.Memory = 1 + g.Int64N(3)
	}
	if g.oneIn(6) {
		s.Ports = g.ports(1 + g.IntN(2))
	}
	if g.oneIn(6) {
		s.MaxPerNode = 1 + g.IntN(4)
	}
	if g.oneIn(3) {
		for range 1 + g.IntN(3) {
			s.Constraints = append(s.Constraints, g.constraint())
		}
	}
	if g.oneIn(4) {
		for range 1 + g.IntN(2) {
			s.Platforms = append(s.Platforms, g.platform(wanted))
		}
	}
	return s
}

func (g generator) node(name string, s *Service, most int, failing bool) Node {
	n := Node{Name: name, Labels: map[string]string{}, State: Active}
	for i, label := range []string{"az", "row", "rack"} {
		if value := g.IntN(4 + i); value > 0 {
			n.Labels[label] = string(rune('a' + value - 1))
		}
	}
	if !g.oneIn(3) {
		n.Labels["disk"] = g.oneOf("ssd", "ssd", "SSD", "hdd", "s*d")
	}
	n.CPU, n.Memory = g.amount(), g.amount()
	if g.oneIn(10) {
		n.State = []State{Pause, Drain, Down}[g.IntN(3)]
	}
	if n.State == Drain || n.State == Down {
		return n
	}
	n.Platform = g.platform(reported)
	if slices.ContainsFunc(s.Constraints, aboutArch) {
		// SwarmKit compares a constraint with what the engine reports, we with
		// the name of Go and of images: they agree where it is that.
		n.Platform.Arch = strings.NewReplacer("x86_64", "amd64", "aarch64", "arm64").Replace(n.Platform.Arch)
	}
	n.Running, n.Older, n.Others = g.IntN(most+1), g.older(most), g.IntN(most+1)
	if g.oneIn(40) {
		n.Running += 100
	}
	if s.MaxPerNode > 0 {
		n.Older = 0
	}
	if len(s.Ports) > 0 && g.oneIn(3) {
		n.Taken = g.ports(1 + g.IntN(2))
	}
	if failing && g.oneIn(3) {
		n.Failures = 3 + g.IntN(5)
	}
	return n
}

// amount of a resource: of some nodes plenty, of others next to nothing.
func (g generator) amount() int64 {
	if g.oneIn(3) {
		return g.Int64N(12)
	}
	return 1000
}

func (g generator) older(most int) int {
	if g.oneIn(3) {
		return g.IntN(most + 1)
	}
	return 0
}
