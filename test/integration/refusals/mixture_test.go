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
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// notHelpful is what preemption adds when no pod that is removed would help.
func notHelpful(nodes int) string {
	return fmt.Sprintf(" preemption: 0/%d nodes are available: %d Preemption is not helpful for scheduling.", nodes, nodes)
}

// SwarmKit forgets its counts whenever a node accepts: of one node with room for
// one, two that are paused and two tasks, the one that is left over was told of
// two paused nodes, of those and a full one, or of the full one alone.
func TestMixtureOfSection1_5OneNodeWithRoom(t *testing.T) {
	c := start(t, append(nodes("open", 1, room("1")), nodes("paused", 2, cordoned)...)...)
	c.create(pod("a").Obj(), pod("b").Obj())
	placed, refusals := c.decisions()
	if !slices.Equal(placed, []string{"open-0"}) || len(refusals) != 1 {
		t.Fatalf("placed on %v, refused %v", placed, refusals)
	}
	for _, got := range refusals {
		want := "Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." +
			" preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
		if got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
	}
}

// Here SwarmKit never tells of the paused nodes.
func TestMixtureOfSection1_5ThreeNodesWithRoom(t *testing.T) {
	c := start(t, append(nodes("open", 3, room("1")), nodes("paused", 2, cordoned)...)...)
	for i := range 5 {
		c.create(pod(fmt.Sprint("p", i)).Label(clusterview.WorkloadLabel, "web").Obj())
	}
	placed, refusals := c.decisions()
	if !slices.Equal(placed, []string{"open-0", "open-1", "open-2"}) || len(refusals) != 2 {
		t.Fatalf("placed on %v, refused %v", placed, refusals)
	}
	for name, got := range refusals {
		want := "Unschedulable: 0/5 nodes are available: 2 node(s) were unschedulable, 3 Insufficient cpu." +
			" preemption: 0/5 nodes are available: 2 Preemption is not helpful for scheduling, 3 No preemption victims found for incoming pod."
		if got != want {
			t.Errorf("%s was told\n%s\nwant\n%s", name, got, want)
		}
	}
}

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
// counted once, for the first of its defects.
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
