// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nesting_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/nesting"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

// labelled is the labels of some nodes.
type labelled []map[string]string

// labelledNodes has a node for each line of KEY=VALUE.
func labelledNodes(lines ...string) labelled {
	var nodes labelled
	for _, line := range lines {
		labels := make(map[string]string)
		for _, pair := range strings.Fields(line) {
			key, value, _ := strings.Cut(pair, "=")
			labels[key] = value
		}
		nodes = append(nodes, labels)
	}
	return nodes
}

// byNesting is the order of levels over keys.
func (nodes labelled) byNesting(keys ...string) []string {
	var ordered []string
	n := nodes.nesting(keys)
	n.Sort()
	for _, l := range n.Levels() {
		ordered = append(ordered, l.Property.String())
	}
	return ordered
}

// nesting is that of levels over keys, which may end in !Exclude.
func (nodes labelled) nesting(keys []string) *nesting.Nesting {
	var levels []level.Level
	for _, key := range keys {
		without := level.LastResort
		key, exclude := strings.CutSuffix(key, "!Exclude")
		if exclude {
			without = level.Exclude
		}
		if key == level.NodeName {
			key = ""
		}
		levels = append(levels, level.Level{Strategy: level.Spread, Property: level.Property{Label: key}, NodesWithoutKey: without})
	}
	var ids []int32
	for i := range nodes {
		ids = append(ids, int32(i))
	}
	return nesting.New(levels, ids, func(node int32, l int) placement.Value {
		if levels[l].Property.Label == "" {
			return placement.Value{Text: fmt.Sprint("n", node)}
		}
		text, ok := nodes[node][levels[l].Property.Label]
		return placement.Value{Text: text, Missing: !ok}
	})
}

// quoted finds the keys that a sentence names.
var quoted = regexp.MustCompile(`"[^"]*"`)

func TestUndecided(t *testing.T) {
	const host = "kubernetes.io/hostname"
	racks := []string{"region=r zone=a rack=1 site=x kubernetes.io/hostname=h0", "region=r zone=a rack=2 site=x kubernetes.io/hostname=h1", "region=r zone=b rack=3 site=y kubernetes.io/hostname=h2", "region=r zone=b rack=3 site=y kubernetes.io/hostname=h3"}
	for _, tc := range []struct {
		name       string
		nodes      []string
		keys, want string // "zone<rack" for a zone below a rack, which is finer; "zone" alone where no node has it
	}{
		{"in order", racks, "region zone rack " + host, "[]"},
		{"a zone below a host", racks, host + " zone", "[zone<" + host + "]"},
		{"a zone below a rack", racks, "rack zone " + host, "[zone<rack]"},
		{"two below a host", racks, "node.name zone rack", "[zone<node.name rack<node.name]"},
		{"a region with one value may have more", racks, "zone region", "[]"},
		{"the same nodes under two keys", racks, "zone site", "[]"},
		{"a label that no node has", racks, "zone rak", "[rak]"},
		{"no nodes", nil, "rack zone", "[]"},
		{"a zone divides those without a rack", append([]string{"zone=a", "zone=b"}, racks...), "rack zone", "[]"},
		{"but not if they are all in one", append([]string{"zone=a", "zone=a"}, racks...), "rack zone", "[zone<rack]"},
		{"or if racks exclude them", append([]string{"zone=a", "zone=b"}, racks...), "rack!Exclude zone", "[zone<rack]"},
		{"a zone that a node of a rack lacks", append([]string{"rack=1"}, racks...), "rack zone", "[]"},
		{"or that it lacks and excludes", append([]string{"rack=1"}, racks...), "rack zone!Exclude", "[zone<rack]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sentences := labelledNodes(tc.nodes...).nesting(strings.Fields(tc.keys)).Undecided()
			short := make([]string, len(sentences))
			for i, s := range sentences {
				keys := quoted.FindAllString(s, 2) // the first is named again
				short[i] = strings.ReplaceAll(strings.Join(keys, "<"), `"`, "")
			}
			if got := fmt.Sprint(short); got != tc.want {
				t.Errorf("of %q %s decide nothing, want %s: %q", tc.keys, got, tc.want, sentences)
			}
		})
	}
}

func TestSort(t *testing.T) {
	const host = "kubernetes.io/hostname"
	racks := []string{"zone=a rack=1 kubernetes.io/hostname=h0", "zone=a rack=1 kubernetes.io/hostname=h1", "zone=a rack=2 kubernetes.io/hostname=h2", "zone=b rack=3 kubernetes.io/hostname=h3"}
	for _, tc := range []struct {
		name       string
		nodes      []string
		keys, want string
	}{
		{"none", racks, "", ""},
		{"one", racks, "rack", "rack"},
		{"as kube-scheduler lists its own", racks, host + " zone", "zone " + host},
		{"three, the finest first", racks, host + " rack zone", "zone rack " + host},
		{"three, in order", racks, "zone rack " + host, "zone rack " + host},
		{"node names", racks, "node.name zone", "zone node.name"},
		{"both kinds of hosts stay as listed", racks, "node.name " + host + " zone", "zone node.name " + host},
		{"racks of the same names in each zone do not nest", []string{"zone=a rack=1", "zone=a rack=2", "zone=b rack=1", "zone=b rack=2"}, "rack zone", "rack zone"},
		{"nor do they in the other order", []string{"zone=a rack=1", "zone=a rack=2", "zone=b rack=1", "zone=b rack=2"}, "zone rack", "zone rack"},
		{"the same nodes under two keys stay as listed", []string{"zone=a site=x", "zone=a site=x", "zone=b site=y"}, "site zone", "site zone"},
		{"a node without the coarser key says nothing", append([]string{"rack=1"}, racks...), "rack zone", "zone rack"},
		{"nor one without the finer", append([]string{"zone=b"}, racks...), "rack zone", "zone rack"},
		{"a key that no node has stays where it is listed", racks, "rack none zone", "none zone rack"},
		{"hosts come last though a rack is one host", []string{"rack=1 kubernetes.io/hostname=h0", "rack=2 kubernetes.io/hostname=h1"}, host + " rack", "rack " + host},
		{"even with a host name on two nodes", []string{"zone=a kubernetes.io/hostname=x", "zone=b kubernetes.io/hostname=x"}, host + " zone", "zone " + host},
		{"only one pair nests", []string{"zone=a rack=1 kind=x", "zone=a rack=2 kind=y", "zone=b rack=3 kind=x", "zone=b rack=3 kind=y"}, "rack kind zone", "kind zone rack"},
		{"no nodes", nil, host + " rack zone", "rack zone " + host},
	} {
		if got := strings.Join(labelledNodes(tc.nodes...).byNesting(strings.Fields(tc.keys)...), " "); got != tc.want {
			t.Errorf("%s: %q are ordered as %q, want %q", tc.name, tc.keys, got, tc.want)
		}
	}
}

// Of a cluster in which all keys nest, the list says nothing: every order of it divides the nodes alike.
func TestPropertySort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 4).Draw(t, "keys")
		var keys []string
		for i := range depth {
			keys = append(keys, fmt.Sprint("k", i))
		}
		var lines []string
		for range rapid.IntRange(0, 8).Draw(t, "nodes") {
			var line, path string
			for i := range depth {
				// Each value has its path in it, so that the second key lies inside the first, and so on.
				path += fmt.Sprint("-", rapid.IntRange(0, 2).Draw(t, "value"))
				line += fmt.Sprintf(" k%d=v%s", i, path)
			}
			lines = append(lines, line)
		}
		listed := rapid.Permutation(keys).Draw(t, "listed")
		ordered := labelledNodes(lines...).byNesting(listed...)
		if sorted := slices.Sorted(slices.Values(ordered)); !slices.Equal(sorted, keys) {
			t.Fatalf("%q became %q", listed, ordered)
		}
		// Where keys divide the nodes alike, they stay as listed, and divide the same in either order.
		if got := divided(lines, ordered); !slices.Equal(got, divided(lines, keys)) {
			t.Fatalf("%q divide the nodes as %d", ordered, got)
		}
	})
}

// divided is how many branches each level has, of those that divide anything.
func divided(lines, keys []string) []int {
	var counts []int
	before := 1
	for i := range keys {
		branches := make(map[string]bool)
		for _, line := range lines {
			var path []string
			for _, key := range keys[:i+1] {
				for _, pair := range strings.Fields(line) {
					if strings.HasPrefix(pair, key+"=") {
						path = append(path, pair)
					}
				}
			}
			branches[strings.Join(path, "/")] = true
		}
		if len(branches) > before {
			before = len(branches)
			counts = append(counts, before)
		}
	}
	return counts
}
