// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

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

// A program that crashes everywhere is known to only once it has crashed everywhere. Until then the
// node of which nothing is heard looks the best, as a sound one would beside bad ones; from then on no
// node is behind another, and pods go where the fewest are.
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
