// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheWayThrough holds the table of docs/algorithm.md that follows one pod against the code:
// each function it names is in the package that it names.
func TestTheWayThrough(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithm.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "\n## One pod, from PreFilter to its binding\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("docs/algorithm.md has no such section")
	}
	functions := make(map[[2]string]bool)
	for _, s := range own(t) {
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test {
				functions[[2]string{s.room, f.Name.Name}] = true
			}
		}
	}
	name := regexp.MustCompile("`([^`]+)`")
	steps := 0
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \|.*$`).FindAllString(section, -1) {
		cells := strings.Split(row, " | ")
		room := name.FindStringSubmatch(cells[2])[1]
		for _, m := range name.FindAllStringSubmatch(cells[3], -1) {
			steps++
			if !functions[[2]string{room, m[1]}] {
				t.Errorf("%s has no function %s: %s", room, m[1], row)
			}
		}
	}
	if steps < 15 {
		t.Errorf("the table names %d functions", steps)
	}
}

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

// Workflows run actions by their commits, with the version beside it for people: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	must(t, err)
	uses, pinned := regexp.MustCompile(`(?m)^.*\buses: *(\S+)(.*)$`), regexp.MustCompile(`^[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	actions := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if action := m[1] + m[2]; len(m[1]) > 2 && m[1][:2] != "./" {
				actions++
				if !pinned.MatchString(action) {
					t.Errorf("%s: %s: write OWNER/NAME@COMMIT # vX.Y.Z", file, action)
				}
			}
		}
	}
	if actions < 6 {
		t.Errorf("the workflows use %d actions", actions)
	}
}
