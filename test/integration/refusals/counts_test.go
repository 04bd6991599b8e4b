// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// defects of a node, in the order in which the filters find them.
var defects = []struct {
	reason string
	change func(*st.NodeWrapper)
}{
	{"node(s) were unschedulable", cordoned},
	{"node(s) had untolerated taint(s)", tainted},
	{"Insufficient cpu", room("500m")},
	{"node(s) didn't match Pod's node affinity/selector", label("disk", "hdd")},
	{"node(s) didn't have a property that the pod's placement requires", func(n *st.NodeWrapper) { delete(n.Labels, corev1.LabelTopologyZone) }},
}

// TestCountsAreExact makes clusters at random, in which some nodes accept a pod and
// fill up with it, and the others have any of the defects at once. Each node must be
// counted once, for the first of its defects. SwarmKit forgets its counts whenever a node accepts.
func TestCountsAreExact(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			exact(t, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // a test that must be repeatable
		})
	}
}

func exact(t *testing.T, r *rand.Rand) {
	t.Helper()
	open := 1 + r.IntN(3)
	all := nodes("open", open, label("disk", "ssd"), label(corev1.LabelTopologyZone, "a"), room("1"))
	counts := map[string]int{"Insufficient cpu": open} // once they are full
	for i := range 1 + r.IntN(12) {
		changes := []func(*st.NodeWrapper){label("disk", "ssd"), label(corev1.LabelTopologyZone, "a")}
		first := ""
		for _, d := range defects {
			if r.IntN(3) == 0 {
				changes = append(changes, d.change)
				if first == "" {
					first = d.reason
				}
			}
		}
		if first == "" {
			changes, first = append(changes, cordoned), defects[0].reason
		}
		counts[first]++
		all = append(all, nodes(fmt.Sprint("closed", i), 1, changes...)...)
	}
	c := start(t, all...)
	for i := range open + 1 + r.IntN(3) {
		c.create(pod(fmt.Sprint("p", i)).Label(clusterview.WorkloadLabel, "web").NodeSelector(map[string]string{"disk": "ssd"}).
			Annotation(clusterview.PlacementAnnotation, "spread="+corev1.LabelTopologyZone+";nodesWithoutKey=Exclude").Obj())
	}
	placed, refusals := c.decisions()
	if len(placed) != open || len(refusals) == 0 {
		t.Fatalf("placed on %v, refused %v; %d nodes are open", placed, refusals, open)
	}
	var parts []string
	for reason, n := range counts {
		parts = append(parts, fmt.Sprint(n, " ", reason))
	}
	slices.Sort(parts)
	want := fmt.Sprintf("Unschedulable: 0/%d nodes are available: %s. preemption: ", len(all), strings.Join(parts, ", "))
	for name, got := range refusals {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s was told\n%s\nwant\n%s", name, got, want)
		}
	}
}

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
