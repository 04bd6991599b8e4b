// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"testing"
)

// rapid draws another seed in each run unless it is told one, which placementtest.Settle does.
const (
	rapidPath  = "pgregory.net/rapid"
	settleRoom = "pkg/placement/placementtest"
)

// unsettled are the rooms whose tests draw, and do not import what settles the seed. The tree
// derives one for each property, and imports it all the same.
func unsettled(sources []source) (rooms []string) {
	imports := func(s *source, path string) bool {
		return s.test && slices.ContainsFunc(s.imports, func(i imported) bool { return i.path == path })
	}
	settles := map[string]bool{}
	for i := range sources {
		if imports(&sources[i], settleRoom) {
			settles[sources[i].room] = true
		}
	}
	for i := range sources {
		if s := &sources[i]; imports(s, rapidPath) && !settles[s.room] && !slices.Contains(rooms, s.room) {
			rooms = append(rooms, s.room)
		}
	}
	return rooms
}

// A property that fails at random fails for whoever comes next, and not for who broke it.
func TestPropertiesSettleTheirSeeds(t *testing.T) {
	for _, room := range unsettled(own(t)) {
		t.Errorf("%s: its properties begin with another seed in each run: have a TestMain call placementtest.Settle", room)
	}
	drawn := []source{{room: "pkg/x", test: true, imports: []imported{{path: rapidPath}}}}
	if got := unsettled(drawn); !slices.Equal(got, []string{"pkg/x"}) {
		t.Errorf("of a room that draws without a seed, it finds %v", got)
	}
	if got := unsettled(append(drawn, source{room: "pkg/x", test: true, imports: []imported{{path: settleRoom}}})); len(got) > 0 {
		t.Errorf("of a room with a seed, it finds %v", got)
	}
}
