// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"maps"
	"testing"
)

// More tasks than there is room for: SwarmKit, our filters and the mirror must find the same room on each node.
func TestFiltersFindTheSameRoom(t *testing.T) {
	plain := func() Cluster {
		c := cluster(20, nil, in("a", 0).room(3), in("B", 1).room(2), in("", 0).room(1))
		c.Nodes[0].Platform = Platform{"linux", "amd64"}
		c.Nodes[1].Platform = Platform{"linux", "aarch64"}
		return c
	}
	web, dns := Port{80, "tcp"}, Port{53, "udp"}
	for name, tc := range map[string]struct {
		change func(*Cluster)
		want   Placed
	}{
		"nothing":                {func(*Cluster) {}, Placed{"n1": 3, "n2": 2, "n3": 1}},
		"equal":                  {asking("node.labels.az == b"), Placed{"n2": 2}},
		"not equal":              {asking("node.labels.az!=A"), Placed{"n2": 2, "n3": 1}},
		"both must hold":         {asking("node.labels.az != a", "NODE.HOSTNAME != N3"), Placed{"n2": 2}},
		"a label's case":         {asking("node.labels.AZ == a"), Placed{}},
		"no pattern":             {asking("node.hostname == n."), Placed{}},
		"the id":                 {asking("node.id == n1"), Placed{"n1": 3}},
		"the operating system":   {asking("node.platform.os == Linux"), Placed{"n1": 3, "n2": 2}},
		"the architecture":       {asking("node.platform.arch != amd64"), Placed{"n2": 2, "n3": 1}},
		"an image's platform":    {func(c *Cluster) { c.Service.Platforms = []Platform{{"linux", "arm64"}} }, Placed{"n2": 2}},
		"any architecture":       {func(c *Cluster) { c.Service.Platforms = []Platform{{"linux", ""}} }, Placed{"n1": 3, "n2": 2}},
		"any system":             {func(c *Cluster) { c.Service.Platforms = []Platform{{"", "x86_64"}} }, Placed{"n1": 3}},
		"at most two":            {func(c *Cluster) { c.Service.MaxPerNode = 2 }, Placed{"n1": 2, "n2": 1, "n3": 1}},
		"a port, and one has it": {func(c *Cluster) { c.Service.Ports = []Port{web} }, Placed{"n1": 1, "n3": 1}},
		"a port of others": {func(c *Cluster) {
			c.Service.Ports, c.Nodes[0].Taken, c.Nodes[2].Taken = []Port{dns, web}, []Port{{53, "tcp"}}, []Port{web}
		}, Placed{"n1": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain()
			tc.change(&c)
			r := run(t.Context(), &c)
			if !r.ok() {
				t.Fatalf("%s", r.String(&c))
			}
			if !maps.Equal(r.all, tc.want) || !maps.Equal(r.swarm, tc.want) {
				t.Errorf("want %v:\n%s", tc.want, r.String(&c))
			}
		})
	}
}

func asking(constraints ...string) func(*Cluster) {
	return func(c *Cluster) { c.Service.Constraints = constraints }
}

// Where the product's rule is not SwarmKit's, the comparison must see it: ours is
// decided by the product, not by the mirror of the other side.
func TestRegression_OursIsDecidedByOurFilters(t *testing.T) {
	c := cluster(1, nil, in("", 0))
	c.Nodes[0].Platform = Platform{"linux", "amd64"}
	c.Service.Constraints = []string{"node.platform.arch == x86_64"}
	r := run(t.Context(), &c)
	if r.err != nil || r.all.Total() != 1 || r.swarm.Total() != 0 {
		t.Errorf("want the task placed by ours alone:\n%s", r.String(&c))
	}
	if len(r.differ) != 1 || len(r.byAll.Findings) == 0 {
		t.Errorf("nobody has seen it: %q, %q", r.differ, r.byAll.Findings)
	}
}

// A limit counts all versions there and one here, which is no input of a comparison.
func TestLimitsAreComparedInOneVersion(t *testing.T) {
	c := flat(1, 0).atMost(1)
	c.Nodes[0].Older = 1
	if placed, err := Ours(&c, All); err == nil {
		t.Errorf("placed %v", placed)
	}
}
