// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"iter"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// standing is a node's values, and the pods on it.
type standing struct {
	values []placement.Value
	pods   int64
}

func each(nodes []standing) iter.Seq2[[]placement.Value, int64] {
	return func(yield func([]placement.Value, int64) bool) {
		for _, n := range nodes {
			if !yield(n.values, n.pods) {
				return
			}
		}
	}
}

// at is a node's values; "-" is a property that it lacks.
func at(texts ...string) (values []placement.Value) {
	for _, text := range texts {
		if text == "-" {
			values = append(values, placement.Value{Missing: true})
			continue
		}
		values = append(values, placement.Value{Text: text})
	}
	return values
}

func TestCheck(t *testing.T) {
	counts := limit.Count([]limit.Limit{of("host", 2), of("rack", 3)}, each([]standing{
		{at("h1", "r1"), 2}, {at("h2", "r1"), 1}, {at("h3", "r2"), 1}, {at("h4", "-"), 5}, {at("-", "r2"), 1}, {at("h6", ""), 1},
	}))
	for _, tc := range []struct {
		name string
		node []placement.Value
		want limit.Verdict
	}{
		{"host and rack full", at("h1", "r1"), limit.Full},
		{"rack full", at("h2", "r1"), limit.Full},
		{"host full", at("h1", "r3"), limit.Full},
		{"room", at("h3", "r2"), limit.Room},
		{"new domains", at("h9", "r9"), limit.Room},
		{"an empty value is a value", at("h6", ""), limit.Room},
		{"no rack", at("h3", "-"), limit.Missing},
		{"full, and no rack: no pod that goes would help", at("h1", "-"), limit.Missing},
		{"no host", at("-", "r2"), limit.Missing},
	} {
		if got := counts.Check(tc.node); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestNoLimitsNoRefusal(t *testing.T) {
	counts := limit.Count(nil, each([]standing{{nil, 9}}))
	counts.Add(nil, 9)
	if got := counts.Check(nil); got != limit.Room {
		t.Errorf("got %d", got)
	}
}

// fill places as many pods as fit, on the first node that has room, and returns how many.
func fill(counts *limit.Counts, nodes [][]placement.Value, pods int) (placed int) {
	for range pods {
		for _, n := range nodes {
			if counts.Check(n) == limit.Room {
				counts.Add(n, 1)
				placed++
				break
			}
		}
	}
	return placed
}

// Treadmill's vector: two racks of two servers in one cell.
func TestTV16AffinityLimitsOfServerRackAndCell(t *testing.T) {
	nodes := [][]placement.Value{at("s1", "r1", "c"), at("s2", "r1", "c"), at("s3", "r2", "c"), at("s4", "r2", "c")}
	for _, tc := range []struct {
		name       string
		limits     []limit.Limit
		pods, want int
	}{
		{"server 1", []limit.Limit{of("server", 1), of("rack", 99), of("cell", 99)}, 5, 4},
		{"server 1, rack 1", []limit.Limit{of("server", 1), of("rack", 1), of("cell", 99)}, 4, 2},
		{"server 1, rack 2, cell 3", []limit.Limit{of("server", 1), of("rack", 2), of("cell", 3)}, 4, 3},
	} {
		if got := fill(limit.Count(tc.limits, each(nil)), nodes, tc.pods); got != tc.want {
			t.Errorf("%s: %d of %d are placed, want %d", tc.name, got, tc.pods, tc.want)
		}
	}
}

// Nomad's vector: racks with 2, 2 and 1 pods, at most 2 each.
func TestNV13DistinctPropertyOfRack(t *testing.T) {
	counts := limit.Count([]limit.Limit{of("rack", 2)}, each([]standing{{at("r0"), 2}, {at("r1"), 1}, {at("r1"), 1}, {at("r2"), 1}}))
	check := func(step string, want ...limit.Verdict) {
		t.Helper()
		for i, rack := range []string{"r0", "r1", "r2"} {
			if got := counts.Check(at(rack)); got != want[i] {
				t.Errorf("%s: rack %s: %d, want %d", step, rack, got, want[i])
			}
		}
	}
	check("at first", limit.Full, limit.Full, limit.Room)
	counts.Add(at("r1"), -1)
	check("a pod in r1 has stopped", limit.Full, limit.Room, limit.Room)
}
