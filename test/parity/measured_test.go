// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// measured is a cluster on which SwarmKit's answer was measured. Both answers are
// written as what each node ends with, older tasks included.
type measured struct {
	name    string
	cluster Cluster
	ours    string
	// swarm are the less even answers that SwarmKit is known to give, counts sorted
	// because it draws lots between equals. None if its answer is as even as ours.
	swarm []string
	// ties are answers of SwarmKit that are as even as ours, with other counts.
	ties []string
}

// in is a node in a zone, "" for none.
func in(zone string, running int) Node {
	n := Node{State: Active, Running: running}
	if zone != "" {
		n.Labels = map[string]string{"az": zone}
	}
	return n
}

// inRegion is a node in a zone of a region.
func inRegion(region, zone string, running int) Node {
	return Node{State: Active, Running: running, Labels: map[string]string{"region": region, "az": zone}}
}

func (n Node) failing(failures int) Node { n.Failures = failures; return n }
func (n Node) paused() Node              { n.State = Pause; return n }
func (n Node) room(more int) Node        { n.CPU = int64(n.Running + more); return n }

// cluster names nodes by their order. Where one has a room given, so that tasks must reserve cpu, the others have plenty.
func cluster(tasks int, labels []string, nodes ...Node) Cluster {
	c := Cluster{Service: Service{Tasks: tasks, Labels: labels}, Nodes: nodes}
	for _, n := range nodes {
		c.Service.CPU = max(c.Service.CPU, min(1, n.CPU))
	}
	for i := range c.Nodes {
		c.Nodes[i].Name = fmt.Sprintf("n%d", i+1)
		if c.Nodes[i].CPU == 0 {
			c.Nodes[i].CPU = 10_000
		}
	}
	return c
}

// flat is a service without preferences on nodes that have some of its tasks.
func flat(tasks int, running ...int) Cluster {
	var nodes []Node
	for _, r := range running {
		nodes = append(nodes, in("", r))
	}
	return cluster(tasks, nil, nodes...)
}

// zones spreads over zones of one node each.
func zones(tasks int, running ...int) Cluster {
	var nodes []Node
	for i, r := range running {
		nodes = append(nodes, in(fmt.Sprintf("az%d", i+1), r))
	}
	return cluster(tasks, az, nodes...)
}

func (c Cluster) unversioned() Cluster     { c.Service.Unversioned = true; return c }
func (c Cluster) atMost(limit int) Cluster { c.Service.MaxPerNode = limit; return c }

var (
	az       = []string{"az"}
	regionAZ = []string{"region", "az"}
)

// SwarmKit's fill is a staircase: it raises each node to the level of its successor and does not come back.
func TestMeasured_1_9_Nodes(t *testing.T) {
	runMeasured(t, []measured{
		{"0,0,5 and ten", flat(10, 0, 0, 5), "5 5 5", []string{"2 6 7"}, nil},
		{"0,0,0,0,9 and twenty", flat(20, 0, 0, 0, 0, 9), "5 5 5 5 9", []string{"2 2 3 11 11"}, nil},
		{"0,1,2,3 and six", flat(6, 0, 1, 2, 3), "3 3 3 3", []string{"2 3 3 4"}, nil},
		{"0,0, a faulty one and ten", cluster(10, nil, in("", 0), in("", 0), in("", 0).failing(5)), "5 5 0", []string{"0 1 9"}, nil},
		{"0,0,0 and ten", flat(10, 0, 0, 0), "4 3 3", nil, nil},
		{"4,3,2,1,0 and two", flat(2, 4, 3, 2, 1, 0), "4 3 2 2 1", nil, nil},
		{"0,0,5 and ten, one by one", flat(10, 0, 0, 5).unversioned(), "5 5 5", nil, nil},
		{"0,0, a faulty one and ten, one by one", cluster(10, nil, in("", 0), in("", 0), in("", 0).failing(5)).unversioned(), "5 5 0", nil, nil},
		{"room 1,100,100 and nine", cluster(9, nil, in("", 0).room(1), in("", 0).room(100), in("", 0).room(100)), "1 4 4", nil, nil},
		{"room 2,2, a faulty one and eight", cluster(8, nil, in("", 0).room(2), in("", 0).room(2), in("", 0).failing(5)), "2 2 4", nil, nil},
	})
}

// SwarmKit counts over-full branches in the shares of the others, and totals as they were before the batch.
func TestMeasured_1_9_Branches(t *testing.T) {
	runMeasured(t, []measured{
		{"100,0,0 and ten", zones(10, 100, 0, 0), "100 5 5", []string{"0 10 100"}, nil},
		{"10,0,0 and six", zones(6, 10, 0, 0), "10 3 3", []string{"0 6 10"}, nil},
		{"3,0,0 and two", zones(2, 3, 0, 0), "3 1 1", []string{"0 2 3"}, nil},
		{"3,0,0 and six", zones(6, 3, 0, 0), "3 3 3", nil, nil},
		{
			"an over-full rack beside an empty one",
			cluster(4, regionAZ, inRegion("dc1", "a", 10), inRegion("dc1", "b", 0), inRegion("dc2", "a", 5), inRegion("dc2", "b", 5)),
			"10 2 6 6", []string{"4 5 5 10"}, []string{"2 6 6 10"},
		},
		{"a closed zone, 10, 0 and twelve", cluster(12, az, in("az1", 0).paused(), in("az2", 10), in("az3", 0)), "0 11 11", []string{"0 10 12"}, nil},
		{"a closed zone, 2, 0 and twelve", cluster(12, az, in("az1", 0).paused(), in("az2", 2), in("az3", 0)), "0 7 7", []string{"0 6 8"}, nil},
		{"3,0,0 and two, one by one", zones(2, 3, 0, 0).unversioned(), "3 1 1", []string{"0 2 3"}, []string{"1 1 3"}},
		{"a zone of a faulty node", cluster(1, az, in("az1", 0).failing(5), in("az2", 1)), "0 2", []string{"1 1"}, nil},
	})
}

func TestVector_2_16(t *testing.T) {
	runMeasured(t, []measured{
		{"tasks on a paused node count for its zone", cluster(4, az, in("az1", 6).paused(), in("az1", 0), in("az2", 0)), "6 0 4", nil, nil},
		{"a paused zone, 0, 3 and six", cluster(6, az, in("az1", 6).paused(), in("az2", 0), in("az3", 3)), "6 5 4", nil, nil},
		{"a paused zone, 0, 0 and nine", cluster(9, az, in("az1", 4).paused(), in("az2", 0), in("az3", 0)), "4 5 4", nil, nil},
		{"a zone with room for two", cluster(12, az, in("az1", 0).room(2), in("az2", 0), in("az3", 0)), "2 5 5", nil, nil},
		{"nodes without the label", cluster(9, az, in("az1", 0), in("az2", 0), in("", 0), in("", 0)), "3 3 2 1", nil, nil},
		{
			"the odd task goes where there are more nodes",
			cluster(5, regionAZ, inRegion("a", "1", 0), inRegion("a", "2", 0), inRegion("a", "3", 0), inRegion("b", "1", 0), inRegion("b", "2", 0)),
			"1 1 1 1 1", nil, []string{"0 1 1 1 2"},
		},
		{"at most one on a node", flat(5, 0, 0, 0).atMost(1), "1 1 1", nil, nil},
		{"at most one on a node, the version before included", flat(2, 1, 1).atMost(1), "1 1", nil, nil},
		{"five, six and seven failures", cluster(4, nil, in("", 0).failing(5), in("", 0).failing(6), in("", 0).failing(7)), "4 0 0", nil, nil},
	})
}

func runMeasured(t *testing.T, cases []measured) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := &tc.cluster
			r := run(t.Context(), c)
			if !r.ok() {
				t.Fatalf("%s", r.String(c))
			}
			if got := ends(c, r.all); got != tc.ours {
				t.Errorf("ours ends with %s, want %s", got, tc.ours)
			}
			even := append([]string{sorted(tc.ours)}, tc.ties...)
			want := tc.swarm
			if want == nil {
				want = even
			}
			want = append(want, tc.ties...)
			// More often, because of the lots.
			for range 5 {
				swarm, err := Swarm(t.Context(), c)
				must(t, err)
				got := sorted(ends(c, swarm))
				if !slices.Contains(want, got) {
					t.Errorf("SwarmKit ends with %s, and was measured to end with one of %q", got, want)
				}
				// The comparison must find what SwarmKit does, were it ours.
				if blamed := len(Compare(c, All, swarm, swarm).Findings) > 0; !blamed && !slices.Contains(even, got) {
					t.Errorf("%s passes for even", got)
				}
			}
		})
	}
}

func ends(c *Cluster, p Placed) string {
	var words []string
	for i := range c.Nodes {
		words = append(words, fmt.Sprint(All.count(&c.Nodes[i])+p[c.Nodes[i].Name]))
	}
	return strings.Join(words, " ")
}

func sorted(counts string) string {
	words := strings.Fields(counts)
	slices.SortFunc(words, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return strings.Join(words, " ")
}

// must ends the test if there is an error.
var must = placementtest.Must

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
