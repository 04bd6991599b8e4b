// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package evenness

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// flat makes one node a value, with room without end unless given.
func flat(counts map[string]int, rooms map[string]int) []Node {
	var nodes []Node
	for _, v := range sortedKeys(counts) {
		room, ok := rooms[v]
		if !ok {
			room = Unlimited
		}
		nodes = append(nodes, Node{Name: "on-" + v, Values: []string{v}, Count: counts[v], Room: room})
	}
	return nodes
}

func TestCheck(t *testing.T) {
	zones := []Level{{Name: "zone"}}
	packed := []Level{{Name: "rack", Pack: true}}
	weighted := []Level{{Name: "zone", Weights: map[string]int64{"a": 70, "b": 30}}}
	shared := []Level{{Name: "zone", Weights: map[string]int64{"a": 6, Others: 3}}}
	tests := []struct {
		name   string
		levels []Level
		nodes  []Node
		want   string // part of the only finding, "" for none
	}{
		{"even", zones, flat(map[string]int{"a": 21, "b": 20, "c": 20}, nil), ""},
		{"one too many", zones, flat(map[string]int{"a": 22, "b": 20, "c": 19}, nil), "spread over zone: a has 22, while c has 19 and room for more"},
		{"small zones are full", zones, flat(map[string]int{"a": 3, "b": 9, "c": 19}, map[string]int{"a": 3, "b": 9, "c": 40}), ""},
		{"a small zone is not full", zones, flat(map[string]int{"a": 3, "b": 8, "c": 20}, map[string]int{"a": 3, "b": 9, "c": 40}), "b has 8 and room for 1 more"},
		{"more than fits", zones, flat(map[string]int{"a": 2}, map[string]int{"a": 1}), "node on-a has 2 pods and room for 1"},
		{"70 to 30", weighted, flat(map[string]int{"a": 14, "b": 6}, nil), ""},
		{"even is wrong for 70 to 30", weighted, flat(map[string]int{"a": 10, "b": 10}, nil), "b has 10 (weight 30), while a has 10 (weight 70)"},
		{"unlisted weighs 1", weighted, flat(map[string]int{"a": 7, "b": 2, "c": 1}, nil), "c has 1 (weight 1), while b has 2 (weight 30)"},
		{"the others share", shared, flat(map[string]int{"a": 8, "b": 2, "c": 2}, nil), ""},
		{"the others are uneven", shared, flat(map[string]int{"a": 8, "b": 3, "c": 1}, nil), "spread over zone in others: b has 3, while c has 1"},
		{"packed", packed, flat(map[string]int{"a": 6, "b": 2, "c": 0}, map[string]int{"a": 6, "b": 6, "c": 6}), ""},
		{"packed into two", packed, flat(map[string]int{"a": 4, "b": 2}, map[string]int{"a": 6, "b": 6}), "a and b both have pods (4 and 2)"},
		{"no label is a branch", zones, flat(map[string]int{"": 4, "a": 4, "b": 3}, nil), ""},
		{"nodes", nil, []Node{{Name: "n1", Count: 3, Room: 9}, {Name: "n2", Count: 1, Room: 9}}, "spread over node: n1 has 3, while n2 has 1 and room for 8 more"},
		{"left out", []Level{{Name: "zone", Exclude: true}}, flat(map[string]int{"": 1, "a": 4}, nil), "node on- has 1 pods, but has no zone and is left out"},
		{"left-out room does not count", []Level{{Name: "zone", Exclude: true}}, flat(map[string]int{"": 0, "a": 4}, nil), ""},
		{
			"what was there before is not blamed", zones,
			[]Node{{Name: "1", Values: []string{"a"}, Count: 9, Fixed: 9, Room: 99}, {Name: "2", Values: []string{"b"}, Count: 2, Room: 99}}, "",
		},
		{
			"inside a branch", []Level{{Name: "zone"}, {Name: "rack"}},
			[]Node{
				{Name: "1", Values: []string{"a", "r1"}, Count: 2, Room: 9}, {Name: "2", Values: []string{"a", "r2"}, Count: 0, Room: 9},
				{Name: "3", Values: []string{"b", "r3"}, Count: 2, Room: 9},
			}, "spread over rack in a: r1 has 2, while r2 has 0",
		},
		{"values are missing", zones, []Node{{Name: "n1"}}, "node n1 has 0 values for 1 levels"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(tc.levels, tc.nodes)
			if tc.want == "" && len(got) > 0 {
				t.Fatalf("want no finding, got %q", got)
			}
			if tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Fatalf("want one finding with %q, got %q", tc.want, got)
			}
		})
	}
}

// cost is what greedy filling by (2*count+1)/weight minimises; scaled by 12 so that it is whole for weights up to 4.
func cost(counts []int, weights []int64) int64 {
	var sum int64
	for i, c := range counts {
		for k := 1; k <= c; k++ {
			sum += int64(2*k-1) * 12 / weights[i]
		}
	}
	return sum
}

// TestCheckAgainstAllPlacements: on one level, Check is silent exactly on the
// placements whose cost no other placement of the same pods undercuts.
func TestCheckAgainstAllPlacements(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(3)
		level := Level{Name: "zone", Weights: map[string]int64{}}
		fixed, room, weights := make([]int, n), make([]int, n), make([]int64, n)
		for i := range n {
			fixed[i] = rng.IntN(3)
			room[i] = fixed[i] + rng.IntN(5)
			weights[i] = 1 + rng.Int64N(4)
			level.Weights[fmt.Sprint(i)] = weights[i]
		}
		byBatch := map[int][][]int{}
		enumerate(fixed, room, nil, 0, byBatch)
		for batch, all := range byBatch {
			best := cost(all[0], weights)
			for _, counts := range all {
				best = min(best, cost(counts, weights))
			}
			for _, counts := range all {
				nodes := make([]Node, n)
				for i := range n {
					nodes[i] = Node{Name: fmt.Sprint("n", i), Values: []string{fmt.Sprint(i)}, Count: counts[i], Fixed: fixed[i], Room: room[i]}
				}
				findings := Check([]Level{level}, nodes)
				if isBest := cost(counts, weights) == best; isBest != (len(findings) == 0) {
					t.Fatalf("seed %d: %d pods on %v, room %v, weights %v placed as %v: best is %v, findings %q", seed, batch, fixed, room, weights, counts, isBest, findings)
				}
			}
		}
	}
}

func enumerate(fixed, room, counts []int, batch int, byBatch map[int][][]int) {
	i := len(counts)
	if i == len(fixed) {
		byBatch[batch] = append(byBatch[batch], append([]int(nil), counts...))
		return
	}
	for c := fixed[i]; c <= room[i]; c++ {
		enumerate(fixed, room, append(counts, c), batch+c-fixed[i], byBatch)
	}
}

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
