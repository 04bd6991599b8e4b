// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func grid(nodes, zones, racks int) Grid {
	return Grid{Nodes: nodes, Zones: zones, Racks: racks, CPU: "32", Memory: "256Gi", Pods: "110"}
}

func TestGridIsEvenAtEveryLevel(t *testing.T) {
	for _, g := range []Grid{grid(24, 3, 2), grid(25, 3, 2), grid(7, 3, 5), grid(1, 1, 1), grid(200, 30, 3)} {
		nodes, err := g.Generate()
		if err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
		if len(nodes) != g.Nodes {
			t.Fatalf("%+v: %d nodes", g, len(nodes))
		}
		zones, racks := map[string]int{}, map[string]map[string]int{}
		names, addresses := map[string]bool{}, map[string]bool{}
		for _, node := range nodes {
			zone, rack := node.Labels[corev1.LabelTopologyZone], node.Labels[RackLabel]
			if !strings.HasPrefix(rack, zone+"-rack-") {
				t.Errorf("rack %q is not named after its zone %q", rack, zone)
			}
			zones[zone]++
			if racks[zone] == nil {
				racks[zone] = map[string]int{}
			}
			racks[zone][rack]++
			names[node.Name], addresses[node.Status.Addresses[0].Address] = true, true
		}
		if len(names) != g.Nodes || len(addresses) != g.Nodes {
			t.Errorf("%+v: %d names and %d addresses", g, len(names), len(addresses))
		}
		even(t, zones, min(g.Zones, g.Nodes))
		for zone, counts := range racks {
			even(t, counts, min(g.Racks, zones[zone]))
		}
	}
}

func even(t *testing.T, counts map[string]int, branches int) {
	t.Helper()
	if len(counts) != branches {
		t.Errorf("%d branches, want %d: %v", len(counts), branches, counts)
	}
	values := slices.Collect(maps.Values(counts))
	if slices.Max(values)-slices.Min(values) > 1 {
		t.Errorf("uneven: %v", counts)
	}
}

func TestGridNode(t *testing.T) {
	nodes, err := grid(24, 3, 2).Generate()
	if err != nil {
		t.Fatal(err)
	}
	node := nodes[4] // the second of zone-b, so in its second rack
	want := map[string]string{
		"kubernetes.io/hostname":        "node-004",
		"topology.kubernetes.io/region": "region-1",
		"topology.kubernetes.io/zone":   "zone-b",
		"example.com/rack":              "zone-b-rack-2",
		"kubernetes.io/os":              "linux",
		"kubernetes.io/arch":            "amd64",
	}
	if node.Name != "node-004" || !maps.Equal(node.Labels, want) {
		t.Errorf("node %q has labels %v", node.Name, node.Labels)
	}
	for _, room := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		if room.Cpu().String() != "32" || room.Memory().String() != "256Gi" || room.Pods().String() != "110" {
			t.Errorf("room %v", room)
		}
	}
}

func TestGridRefusesNonsense(t *testing.T) {
	badCPU := grid(1, 1, 1)
	badCPU.CPU = "many"
	for want, g := range map[string]Grid{
		"--nodes=-1": grid(-1, 1, 1), "--zones=0": grid(1, 0, 1), "--racks=0": grid(1, 1, 0), `--node-cpu="many"`: badCPU,
	} {
		if _, err := g.Generate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that begins with %s", g, err, want)
		}
	}
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 51: "az", 52: "ba"} {
		if got := letters(i); got != want {
			t.Errorf("letters(%d) = %q, want %q", i, got, want)
		}
	}
}
