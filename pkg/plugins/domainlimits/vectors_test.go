// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
)

// Cases of the systems that had such limits before, under the numbers that docs/parity.md gives them.

// One node, limit 1: one of two pods is placed. A pod of the next revision finds room
// beside it, where SwarmKit refuses it until the old one is gone.
func TestVector_2_9_M1(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1")
	if got := r.place(web("t1", "0", "node.name=1")); got != "n1" {
		t.Fatalf("t1 is placed on %q", got)
	}
	fits, diagnosis := r.filter(web("t2", "0", "node.name=1").Obj())
	if s := diagnosis.NodeToStatus.Get("n1"); len(fits) != 0 || s.Message() != domainlimits.ErrReasonFull {
		t.Errorf("t2 fits %q: %v", fits, s)
	}
	if got := r.place(web("t3", "1", "node.name=1")); got != "n1" {
		t.Errorf("the new revision's pod is placed on %q", got)
	}
}

func TestVector_2_9_M2(t *testing.T) {
	r := newRig(t.Context(), t)
	one := func(name string) string { return r.place(web(name, "0", "node.name=1")) }
	if a, b := one("t1"), one("t2"); a != "" || b != "" {
		t.Errorf("without nodes, pods are placed on %q and %q", a, b)
	}
	r.join("n1", "n2")
	if a, b := one("t1"), one("t2"); a == "" || b == "" || a == b {
		t.Errorf("on two nodes, pods are placed on %q and %q", a, b)
	}
	if got := one("t3"); got != "" {
		t.Errorf("a third is placed on %q", got)
	}
	r.join("n3")
	if got := one("t3"); got != "n3" {
		t.Errorf("with a third node, it is placed on %q", got)
	}
	// The same pods under a limit of 3: six more in all, and no seventh.
	var on []string
	for _, name := range []string{"t4", "t5", "t6", "t7", "t8", "t9", "t10"} {
		on = append(on, r.place(web(name, "0", "node.name=3")))
	}
	slices.Sort(on)
	if want := []string{"", "n1", "n1", "n2", "n2", "n3", "n3"}; !slices.Equal(on, want) {
		t.Errorf("under a limit of 3, pods are placed on %q, want %q", on, want)
	}
}

// Limit 1 on three nodes, five pods: one each, and two are left.
func TestVector_2_16_MaxReplicasOfOneOnThreeNodes(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1", "n2", "n3")
	var on []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		on = append(on, r.place(web(name, "0", "node.name=1")))
	}
	if want := []string{"n1", "n2", "n3", "", ""}; !slices.Equal(on, want) {
		t.Errorf("pods are placed on %q, want %q", on, want)
	}
}

// Limit 1 with the old revision on both of two nodes: SwarmKit refuses both pods of the
// new one, and an update that starts new pods first waits for ever (moby#40797).
func TestVector_2_16_RolloutUnderALimitOfOne(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1", "n2")
	r.runs("n1", web("a", "1", "node.name=1"))
	r.runs("n2", web("b", "1", "node.name=1"))
	if a, b, c := r.place(web("c", "2", "node.name=1")), r.place(web("d", "2", "node.name=1")), r.place(web("e", "2", "node.name=1")); a != "n1" || b != "n2" || c != "" {
		t.Errorf("pods are placed on %q, %q and %q, want n1, n2 and none", a, b, c)
	}
}

// Two racks of two servers in one cell.
func TestVector_TV16(t *testing.T) {
	for limits, want := range map[string][]string{
		"server=1":               {"s1", "s2", "s3", "s4", ""},
		"server=1,rack=1":        {"s1", "s3", "", "", ""},
		"server=1,rack=2,cell=3": {"s1", "s2", "s3", "", ""},
	} {
		r := newRig(t.Context(), t)
		r.join("s1 server=1 rack=1 cell=c", "s2 server=2 rack=1 cell=c", "s3 server=3 rack=2 cell=c", "s4 server=4 rack=2 cell=c")
		var on []string
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			on = append(on, r.place(web(name, "0", limits)))
		}
		if !slices.Equal(on, want) {
			t.Errorf("%s: pods are placed on %q, want %q", limits, on, want)
		}
	}
}

// Racks with 2, 2 and 1 pods, at most 2 each; one that stops gives its place back.
func TestVector_NV13(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n0 rack=0", "n1 rack=1", "n2 rack=2", "unlabelled")
	r.runs("n0", web("a", "0", ""))
	r.runs("n0", web("b", "0", ""))
	r.runs("n1", web("c", "0", ""))
	stops := r.runs("n1", web("d", "0", ""))
	r.runs("n2", web("e", "0", ""))
	r.expect("at first", web("p", "0", "rack=2"), "n2")
	stopped := stops.DeepCopy()
	stopped.DeletionTimestamp = new(metav1.Now())
	r.must(r.cache.UpdatePod(r.logger, stops, stopped))
	r.expect("when one in rack 1 has been told to stop", web("p", "0", "rack=2"), "n1", "n2")
}

// In the cycle of a pod group, pods that are assumed in the snapshot alone take room.
func TestPodsOfAGroupTakeRoomFromEachOther(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1 rack=a", "n2 rack=a", "n3 rack=b")
	nodes := r.nodes()
	info, err := framework.NewPodInfo(web("a", "0", "rack=1").Node("n1").Obj())
	r.must(err)
	r.must(r.snapshot.AssumePod(info))
	next, state := web("b", "0", "rack=1").Obj(), framework.NewCycleState()
	if _, s := r.pl.PreFilter(r.ctx, state, next, nodes); !s.IsSuccess() {
		t.Fatal(s)
	}
	for i, want := range []bool{false, false, true} {
		if s := r.pl.Filter(r.ctx, state, next, nodes[i]); s.IsSuccess() != want {
			t.Errorf("node %s: %v", nodes[i].Node().Name, s)
		}
	}
}
