// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Cases of the systems that had such limits before, under the numbers that docs/parity.md gives them.

// TestVectors places pods in turn, which are given by their revisions.
func TestVectors(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  []string
		there  map[string]string // revisions by node
		limits string
		pods   []string
		want   []string // "" for pods that fit nowhere
	}{
		// A pod of the next revision finds room beside it, where SwarmKit refuses it until the old one is gone.
		"2.9 M1, one node, limit 1": {nodes: []string{"n1"}, limits: "node.name=1", pods: []string{"0", "0", "1"}, want: []string{"n1", "", "n1"}},
		"2.16, limit 1 on three nodes, five pods": {
			nodes: []string{"n1", "n2", "n3"}, limits: "node.name=1", pods: []string{"0", "0", "0", "0", "0"}, want: []string{"n1", "n2", "n3", "", ""},
		},
		// SwarmKit refuses both pods of the new revision, and an update that starts new pods first waits for ever (moby#40797).
		"2.16, limit 1 with the old revision on both of two nodes": {
			nodes: []string{"n1", "n2"}, there: map[string]string{"n1": "1", "n2": "1"}, limits: "node.name=1", pods: []string{"2", "2", "2"}, want: []string{"n1", "n2", ""},
		},
		"TV16, servers": {nodes: cell, limits: "server=1", pods: []string{"0", "0", "0", "0", "0"}, want: []string{"s1", "s2", "s3", "s4", ""}},
		"TV16, racks":   {nodes: cell, limits: "server=1,rack=1", pods: []string{"0", "0", "0"}, want: []string{"s1", "s3", ""}},
		"TV16, a cell":  {nodes: cell, limits: "server=1,rack=2,cell=3", pods: []string{"0", "0", "0", "0"}, want: []string{"s1", "s2", "s3", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t.Context(), t)
			r.join(tc.nodes...)
			for node, revision := range tc.there {
				r.runs(node, web("there-"+node, revision, tc.limits))
			}
			var on []string
			for i, revision := range tc.pods {
				on = append(on, r.place(web(fmt.Sprint("p", i), revision, tc.limits)))
			}
			if !slices.Equal(on, tc.want) {
				t.Errorf("pods are placed on %q, want %q", on, tc.want)
			}
		})
	}
}

// cell is two racks of two servers.
var cell = []string{"s1 server=1 rack=1 cell=c", "s2 server=2 rack=1 cell=c", "s3 server=3 rack=2 cell=c", "s4 server=4 rack=2 cell=c"}

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
