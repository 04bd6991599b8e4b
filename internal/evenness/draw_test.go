// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package evenness

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDraw(t *testing.T) {
	levels := []Level{{Name: "zone"}, {Name: "rack"}}
	nodes := []Node{
		{Name: "n1", Values: []string{"zone-a", "r1"}, Count: 2}, {Name: "n2", Values: []string{"zone-a", "r1"}, Count: 1},
		{Name: "n3", Values: []string{"zone-a", "r2"}, Count: 2}, {Name: "n4", Values: []string{"", "r3"}},
	}
	want := strings.TrimPrefix(`
├ (none)    0
│ └ r3      0                       n4:0
└ zone-a    5 █████
  ├ r1      3 ███                   n1:2 n2:1
  └ r2      2 ██                    n3:2
`, "\n")
	if got := Draw(levels, nodes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDrawFitsItsWidth(t *testing.T) {
	var nodes []Node
	for i := range 40 {
		nodes = append(nodes, Node{Name: fmt.Sprintf("node-%03d", i), Values: []string{"zone-a", fmt.Sprintf("zone-a-rack-%d", i%2)}, Count: 1000})
	}
	drawing := Draw([]Level{{Name: "zone"}, {Name: "rack"}}, nodes)
	for line := range strings.Lines(drawing) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got := strings.Count(drawing, ":1000"); got != len(nodes) {
		t.Errorf("%d of %d nodes are drawn", got, len(nodes))
	}
}
