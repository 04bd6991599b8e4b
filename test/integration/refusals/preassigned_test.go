// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// on is the node of a pod, "" if it has none.
func (c *cluster) on(name string) string {
	c.Helper()
	p, err := c.client.CoreV1().Pods(namespace).Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return p.Spec.NodeName
}

// TestPreassignedTasks: two pods are pinned to n-0, and are confirmed before the
// first, which is older, is looked at. It goes where fewer are.
func TestVector_2_8_G1(t *testing.T) {
	t1, t2, t3 := web(pod("t1")), pinnedTo(web(pod("t2")), "n-0"), pinnedTo(web(pod("t3")), "n-0")
	t1.CreationTimestamp(metav1.Unix(1, 0))
	c := start(t, append(nodes("n", 2), t1.Obj(), t2.Obj(), t3.Obj())...)
	c.decisions()
	if c.on("t1") != "n-1" || c.on("t2") != "n-0" || c.on("t3") != "n-0" {
		t.Errorf("t1, t2 and t3 are on %q, %q and %q", c.on("t1"), c.on("t2"), c.on("t3"))
	}
}

// TestIgnoreTasks: pods that are pinned to n-0 and terminating take no room there.
func TestVector_2_8_G2(t *testing.T) {
	going := func(name string) runtime.Object {
		return pinnedTo(web(pod(name)), "n-0").Terminating().Obj()
	}
	c := start(t, append(nodes("n", 1, room("1")), web(pod("t1")).Obj(), going("t2"), going("t3"))...)
	placed, refusals := c.decisions()
	if !slices.Equal(placed, []string{"n-0"}) || len(refusals) != 0 || c.on("t1") != "n-0" {
		t.Errorf("placed on %v, refused %v", placed, refusals)
	}
}

// The only room of a pinned pod is not taken by its batch, though that came first
// and has somewhere else to go.
func TestABatchLeavesRoomForAPinnedPod(t *testing.T) {
	all := append(nodes("a", 1, room("1")), nodes("b", 1, room("3"))...)
	for _, name := range []string{"p1", "p2", "p3"} {
		all = append(all, web(pod(name)).Obj())
	}
	c := start(t, append(all, pinnedTo(web(pod("pinned")), "a-0").Obj())...)
	placed, refusals := c.decisions()
	if c.on("pinned") != "a-0" || !slices.Equal(placed, []string{"a-0", "b-0", "b-0", "b-0"}) {
		t.Errorf("pinned is on %q; placed on %v, refused %v", c.on("pinned"), placed, refusals)
	}
}

// A preassigned pod is told of its node, and that the others were not meant.
func TestPinnedPodIsRefused(t *testing.T) {
	for _, tc := range []refusalCase{
		{
			"its node is full", append(nodes("full", 1, room("0")), nodes("n", 2)...), pinnedTo(pod("p"), "full-0"),
			"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]." + notHelpful(3),
		},
		{
			"its node is not there", nodes("n", 2), pinnedTo(pod("p"), "gone"),
			"0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]." + notHelpful(2),
		},
	} {
		tc.run(t)
	}
}
