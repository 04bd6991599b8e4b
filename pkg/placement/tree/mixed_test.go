// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// Datacenters are even, and in each of them one rack is filled before another is begun.
func TestSpreadOverDatacentersPackIntoRacks(t *testing.T) {
	levels, err := level.Parse("spread=datacenter,pack=rack")
	if err != nil {
		t.Fatal(err)
	}
	tr := simulation.New(levels)
	const room = 2
	at := map[string][2]string{}
	for _, dc := range []string{"east", "west"} {
		for _, rack := range []string{"1", "2", "3"} {
			for _, node := range []string{"a", "b"} {
				name := dc + rack + node
				at[name] = [2]string{dc, rack}
				tr.Set(placement.Node{Name: name, Values: []placement.Value{{Text: dc}, {Text: rack}}})
			}
		}
	}
	onNode, inDatacenter, inRack := map[string]int{}, map[string]int{}, map[[2]string]int{}
	fits := func(name string) bool { return onNode[name] < room }
	for pods := 1; pods <= 12; pods++ {
		for _, name := range tr.Place(1, fits) {
			onNode[name]++
			inDatacenter[at[name][0]]++
			inRack[at[name]]++
		}
		if east, west := inDatacenter["east"], inDatacenter["west"]; east+west != pods || max(east, west)-min(east, west) > 1 {
			t.Fatalf("of %d pods %d are in the east and %d in the west", pods, east, west)
		}
		// A rack holds four. What a datacenter has needs so many racks, and no more.
		racks := map[string]int{}
		for place := range inRack {
			racks[place[0]]++
		}
		for dc, n := range inDatacenter {
			if want := (n + 2*room - 1) / (2 * room); racks[dc] != want {
				t.Errorf("the %d pods in the %s are in %d racks, want %d: %v", n, dc, racks[dc], want, inRack)
			}
		}
	}
}
