// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// TestPicture places the pods of the picture in docs/evenness.md, and wants the picture
// to be what comes of it.
func TestPicture(t *testing.T) {
	levels, err := level.Parse("spread=topology.kubernetes.io/zone")
	if err != nil {
		t.Fatal(err)
	}
	spread := simulation.New(levels)
	var nodes []evenness.Node
	for zone, size := range []int{10, 5, 2} {
		for i := range size {
			name, value := fmt.Sprintf("zone-%c-%02d", 'a'+zone, i), fmt.Sprintf("zone-%c", 'a'+zone)
			spread.Set(placement.Node{Name: name, Values: []placement.Value{{Text: value}}})
			nodes = append(nodes, evenness.Node{Name: name, Values: []string{value, value + "-rack-1"}})
		}
	}
	spread.Place(61, func(string) bool { return true })
	for i := range nodes {
		tally, _ := spread.Tally(nodes[i].Name)
		nodes[i].Count = int(tally.Revision)
	}
	picture := draw("web: 61 pods over zones of ten, five and two nodes", "as even as it can be", nodes)
	page, err := os.ReadFile("../../docs/evenness.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), picture) {
		t.Errorf("docs/evenness.md does not show this picture:\n%s", picture)
	}
}
