// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// cluster is a ledger beside the tree that goes by it, and a controller that replaces what fails once a second. Bad nodes refuse every pod.
type cluster struct {
	*story
	tree  *simulation.Tree
	nodes []string
	bad   map[string]bool
	// lost counts the pods that were refused, by node, and pods all there were.
	lost map[string]int
	pods int
	// running are the pods that have a node, in order, as long as they run.
	running []running
}

type running struct {
	pod, node string
	// proof is when it proves its node.
	proof time.Time
}

// newCluster has nodes that a zone each, turn about, if there are any, and of which only the bad ones are empty.
func newCluster(t *testing.T, o failure.Options, nodes, zones int, bad func(int) bool) *cluster {
	t.Helper()
	c := &cluster{story: tell(t, o), bad: make(map[string]bool), lost: make(map[string]int)}
	var levels []level.Level
	if zones > 0 {
		zone, err := level.ParseProperty("topology.kubernetes.io/zone")
		placementtest.Must(t, err)
		levels = []level.Level{{Property: zone}}
	}
	c.tree = simulation.New(levels)
	c.tree.Request = placementtest.Request
	c.tree.SetRule(placement.Faults{Threshold: o.Rule.Threshold, HalfOpen: true})
	for i := range nodes {
		n := placement.Node{Name: fmt.Sprintf("n%02d", i), Tally: placement.Tally{All: 10}, Usage: placementtest.Usage(10)}
		if c.bad[n.Name] = bad(i); c.bad[n.Name] {
			n.Tally.All, n.Usage = 0, placementtest.Usage(0)
		}
		if zones > 0 {
			n.Values = []placement.Value{{Text: fmt.Sprint("zone-", i%zones)}}
		}
		c.nodes = append(c.nodes, n.Name)
		c.tree.Set(n)
	}
	return c
}

// keep has that many pods for so many seconds.
func (c *cluster) keep(replicas, seconds int) {
	c.t.Helper()
	for range seconds {
		c.at(c.now.Sub(start) + time.Second)
		for _, r := range c.running {
			if r.proof.Equal(c.now) {
				c.Succeed(web1, r.node, r.pod, c.now)
			}
		}
		var refused []running
		for missing := replicas - len(c.running); missing > 0; missing-- {
			r := c.place()
			if c.bad[r.node] {
				refused = append(refused, r)
			} else {
				c.running = append(c.running, r)
			}
		}
		for _, r := range refused {
			c.refuse(r)
		}
	}
}

// place places a pod.
func (c *cluster) place() running {
	c.t.Helper()
	for _, n := range c.nodes {
		c.tree.SetRecord(n, c.Record(web1, n))
	}
	node, ok := c.tree.Next(func(string) bool { return true })
	if !ok {
		c.t.Fatal("there is no node for a pod, and all would do")
	}
	c.pods++
	r := running{fmt.Sprint("pod-", c.pods), node, c.now.Add(12 * time.Second)}
	c.tree.Add(node, placement.Tally{Revision: 1, Workload: 1, All: 1})
	c.Place(web1, node, r.pod)
	return r
}

// refuse is what becomes of a pod on a bad node.
func (c *cluster) refuse(r running) {
	c.lost[r.node]++
	if _, first := c.Fail(web1, r.node, failure.Rule{}, failure.Failure{Pod: r.pod, Kind: "OutOfcpu", At: c.now}); first {
		for _, other := range c.running {
			c.Place(web1, other.node, other.pod)
		}
	}
	c.Gone(web1, r.node, r.pod)
	c.tree.Add(r.node, placement.Tally{Revision: -1, Workload: -1, All: -1})
}

func (c *cluster) losses() (n int) {
	for _, of := range c.lost {
		n += of
	}
	return n
}

// A workload of few pods that bad nodes refuse has seen nothing but those: what it
// shows is on all nodes that it was tried on. It must find the good ones all the same.
func TestRegression_BadNodesSwallowSmallWorkloads(t *testing.T) {
	none := func(int) bool { return false }
	below := func(n int) func(int) bool { return func(i int) bool { return i < n } }
	zone := func(i int) bool { return i%3 == 0 }
	for _, tc := range []struct {
		name                   string
		nodes, zones, replicas int
		bad                    func(int) bool
		most                   int
	}{
		{"all are good", 20, 0, 3, none, 0},
		{"2 of 20 bad", 20, 0, 1, below(2), 2},
		{"2 of 20 bad", 20, 0, 2, below(2), 2},
		{"2 of 20 bad", 20, 0, 3, below(2), 2},
		{"4 of 20 bad", 20, 0, 5, below(4), 4},
		{"4 of 20 bad", 20, 0, 60, below(4), 20},
		{"one of 3 zones bad", 12, 3, 1, zone, 12},
		{"one of 3 zones bad", 12, 3, 2, zone, 12},
		{"one of 3 zones bad", 12, 3, 3, zone, 12},
		{"one of 3 zones bad", 12, 3, 4, zone, 12},
		{"one of 3 zones bad", 12, 3, 30, zone, 12},
		{"20 of 60 bad", 60, 0, 30, zone, 20},
		{"20 of 60 bad", 60, 0, 3, zone, 20},
		{"a zone of 20 bad", 60, 3, 30, zone, 15},
	} {
		t.Run(fmt.Sprintf("%s, %d replicas, %d zones", tc.name, tc.replicas, tc.zones), func(t *testing.T) {
			c := newCluster(t, options, tc.nodes, tc.zones, tc.bad)
			c.keep(tc.replicas, 600)
			if n := c.losses(); len(c.running) != tc.replicas || n > tc.most {
				t.Errorf("after 10 minutes %d pods of %d run and %d were lost, want at most %d: %v", len(c.running), tc.replicas, n, tc.most, c.lost)
			}
			for _, m := range c.Marks() {
				if !c.bad[m.Node] {
					t.Errorf("%s is good and marked: %+v", m.Node, m)
				}
			}
		})
	}
}

// What fails everywhere goes on failing everywhere alike, and marks nothing.
func TestABadImageStaysEven(t *testing.T) {
	for _, replicas := range []int{3, 30} {
		c := newCluster(t, options, 12, 3, func(int) bool { return true })
		for round := range 100 {
			clear(c.lost)
			c.keep(replicas, 1)
			zones := make(map[int]int)
			var counts []int
			for i, n := range c.nodes {
				zones[i%3] += c.lost[n]
				counts = append(counts, c.lost[n])
			}
			even := map[int]int{0: replicas / 3, 1: replicas / 3, 2: replicas / 3}
			if !maps.Equal(zones, even) || slices.Max(counts)-slices.Min(counts) > 1 {
				t.Errorf("round %d of %d replicas: %d pods in the zones, %d on the nodes; want as many everywhere", round, replicas, zones, counts)
			}
			if marks := c.Marks(); len(marks) > 0 {
				t.Fatalf("round %d of %d replicas: marks %+v", round, replicas, marks)
			}
		}
	}
}

// crashing is a workload whose pods all crash, on nodes n1 to n5.
type crashing struct {
	*story
	pods    map[string][]string // by node
	crashes int
}

// place places pods one by one on what is known at that time.
func (c *crashing) place(pods int) {
	c.t.Helper()
	for range pods {
		spread := simulation.New(nil)
		spread.SetRule(placement.Faults{Threshold: options.Rule.Threshold, HalfOpen: true})
		for _, n := range nodes {
			count := int64(len(c.pods[n]))
			spread.Set(placement.Node{Name: n, Tally: placement.Tally{Revision: count, Workload: count, All: count}, Record: c.Record(web1, n)})
		}
		node := spread.Place(1, func(string) bool { return true })[0]
		uid := fmt.Sprint(node, "/", len(c.pods[node]))
		c.pods[node] = append(c.pods[node], uid)
		c.Place(web1, node, uid)
	}
}

// crash has pods of a node crash. The first crash of all has the ledger told of all pods.
func (c *crashing) crash(node string, pods ...string) {
	for _, uid := range pods {
		c.crashes++
		_, first := c.Fail(web1, node, failure.Rule{}, failure.Failure{Pod: uid, Key: fmt.Sprint(c.crashes), Kind: "Error(1)", At: c.now})
		for _, n := range nodes {
			for _, uid := range c.pods[n] {
				if first {
					c.Place(web1, n, uid)
				}
			}
		}
	}
}

func (c *crashing) want(counts ...int) {
	c.t.Helper()
	var got []int
	for _, n := range nodes {
		got = append(got, len(c.pods[n]))
	}
	if slices.Sort(got); !slices.Equal(got, counts) {
		c.t.Errorf("the nodes have %v pods, want %v", got, counts)
	}
}

// A program that crashes everywhere is known to only once it has crashed everywhere. Until then the node of which nothing is heard looks
// the best, as a sound one would beside bad ones; from then on no node is behind another, and pods go where the fewest are.
func TestAProgramThatCrashesEverywhereWhileItIsPlaced(t *testing.T) {
	c := &crashing{story: tell(t, options), pods: map[string][]string{}}
	c.place(10)
	c.want(2, 2, 2, 2, 2)
	for _, n := range nodes[:4] {
		c.crash(n, c.pods[n][0])
	}
	c.place(5)
	c.want(2, 2, 2, 2, 7)
	c.crash(nodes[4], c.pods[nodes[4]][0])
	c.place(5)
	c.want(3, 3, 3, 4, 7)
	for range 4 {
		for _, n := range nodes {
			c.crash(n, c.pods[n]...)
		}
	}
	marked(t, c.Ledger)
	c.place(10)
	c.want(5, 6, 6, 6, 7)
	c.place(4)
	c.want(6, 7, 7, 7, 7)
}
