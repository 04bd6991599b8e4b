// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// cluster24 is the demo's cluster, with so many pods on every node but the first.
func cluster24(count int) []evenness.Node {
	var nodes []evenness.Node
	for i := range 24 {
		zone := fmt.Sprintf("zone-%c", 'a'+i%3)
		n := evenness.Node{Name: fmt.Sprintf("node-%03d", i), Values: []string{zone, fmt.Sprintf("%s-rack-%d", zone, 1+i/3%2)}, Count: count}
		if i == 0 {
			n.Count = 0
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestDraw(t *testing.T) {
	want := strings.TrimPrefix(`
web: 23 pods                                                                                    even
  ├ zone-a   7 ███████                │ rack-1  3:  ·  1  1  1 │ rack-2  4:  1  1  1  1
  ├ zone-b   8 ████████               │ rack-1  4:  1  1  1  1 │ rack-2  4:  1  1  1  1
  └ zone-c   8 ████████               │ rack-1  4:  1  1  1  1 │ rack-2  4:  1  1  1  1
`, "\n")
	if got := draw("web: 23 pods", "even", cluster24(1)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFits wants every line of every drawing within the width, also those of the heads.
func TestFits(t *testing.T) {
	for _, w := range workloads {
		head := fmt.Sprintf("%s: %d pods, %s", w.name, w.returned, w.about)
		for line := range strings.Lines(draw(head, "as even as it can be", cluster24(99))) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// What is to be tried next is there.
func TestNext(t *testing.T) {
	pages := regexp.MustCompile(`docs/[a-z-]+\.md`).FindAllString(next, -1)
	for _, page := range pages {
		if _, err := os.Stat("../../" + page); err != nil {
			t.Error(err)
		}
	}
	if len(pages) < 3 || !strings.Contains(next, "tree deployment/"+workloads[0].name+" -n "+namespace) {
		t.Errorf("it says %s", next)
	}
}

func TestVerdict(t *testing.T) {
	tests := []struct {
		failures []string
		status   int
		want     string
	}{
		{nil, 0, next + "\nPASS: 3 spreads were judged, and every one is as even as it can be (2.0 s)\n"},
		{
			[]string{"web after create: a has 2, while b has 0"}, 1,
			"\nweb after create: a has 2, while b has 0\n\nFAIL: 1 of 3 spreads could be more even: web after create (2.0 s)\n",
		},
	}
	for _, tc := range tests {
		var out strings.Builder
		p := &play{say: newNarrator(&out, time.Now()), judged: 3, failures: tc.failures, names: []string{"web after create"}}
		if status := p.verdict(2 * time.Second); status != tc.status || out.String() != tc.want {
			t.Errorf("status %d and %q, want %d and %q", status, out.String(), tc.status, tc.want)
		}
	}
}

// TestPicture places the pods of the picture in docs/evenness.md, and wants the picture
// to be what comes of it.
func TestPicture(t *testing.T) {
	levels, err := level.Parse("spread=topology.kubernetes.io/zone")
	must(t, err)
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
	must(t, err)
	if !strings.Contains(string(page), picture) {
		t.Errorf("docs/evenness.md does not show this picture:\n%s", picture)
	}
}
