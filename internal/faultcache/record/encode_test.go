// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain has the random tests begin with one seed.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	os.Exit(m.Run())
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// saved is a revision that failed at a time on nodes, with so many bytes each.
func saved(name string, nodes, size int, at time.Time) Revision {
	h := failure.RevisionHistory{Workload: name}
	for i := range nodes {
		h.Nodes = append(h.Nodes, failure.NodeHistory{Node: fmt.Sprintf("n%d", i), Failures: []failure.Failure{{Pod: strings.Repeat("x", size), At: at}}})
	}
	return Revision{RevisionHistory: h, Threshold: 5}
}

// decoded is what a record has: how many nodes of each workload.
func decoded(t rapid.TB, text []byte) map[string]int {
	t.Helper()
	var r Record
	if err := json.Unmarshal(text, &r); err != nil || r.Version != version {
		t.Fatalf("a record of version %d: %v", r.Version, err)
	}
	has := make(map[string]int)
	for _, s := range r.Revisions {
		has[s.Workload] = len(s.Nodes)
	}
	return has
}

func TestARecordHasRoomForTheNewest(t *testing.T) {
	r := Record{Version: version}
	for i := range 100 {
		r.Revisions = append(r.Revisions, saved(fmt.Sprintf("ns/w%d", i), 1, 100, noon.Add(time.Duration(i)*time.Second)))
	}
	text, err := r.Encode(10_000)
	if err != nil || len(text) > 10_000 || len(text) < 9_000 {
		t.Errorf("it has %d bytes: %v", len(text), err)
	}
	if has := decoded(t, text); has["ns/w99"] != 1 || has["ns/w0"] != 0 {
		t.Errorf("it is not the newest that are kept: %v", has)
	}
}

// What does not fit leaves room for others, and has what remains.
func TestRegression_ALargeRevision(t *testing.T) {
	const kilobyte = 950
	for name, tc := range map[string]struct {
		revisions []Revision
		want      map[string]int // at least
	}{
		"after a small one":  {[]Revision{saved("small", 1, kilobyte, noon.Add(time.Second)), saved("large", 950, kilobyte, noon)}, map[string]int{"small": 1, "large": 800}},
		"before a small one": {[]Revision{saved("small", 1, kilobyte, noon), saved("large", 950, kilobyte, noon.Add(time.Second))}, map[string]int{"small": 1, "large": 800}},
		"two of a size":      {[]Revision{saved("a", 500, kilobyte, noon), saved("b", 500, kilobyte, noon)}, map[string]int{"a": 500, "b": 350}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Record{Version: version, Revisions: tc.revisions}
			text, err := r.Encode(Limit)
			if err != nil || len(text) > Limit {
				t.Fatalf("%d bytes: %v", len(text), err)
			}
			has := decoded(t, text)
			for workload, nodes := range tc.want {
				if has[workload] < nodes {
					t.Errorf("it has %d nodes of %s, want %d", has[workload], workload, nodes)
				}
			}
		})
	}
}

// Of what is cut the newest is kept, in order, and nothing is cut without need.
func TestWhatIsCutFirst(t *testing.T) {
	var failures []failure.Failure
	for i := range 20 {
		failures = append(failures, failure.Failure{Pod: fmt.Sprint(i), Kind: []string{"own", "Sandbox"}[i%2], At: noon.Add(time.Duration(i) * time.Second)})
	}
	s := Revision{RevisionHistory: failure.RevisionHistory{Workload: "w", Nodes: []failure.NodeHistory{{Node: "n", Failures: failures}}}, Own: []string{"own"}, Threshold: 3}
	var pods []string
	for _, f := range s.shorter().Nodes[0].Failures {
		pods = append(pods, f.Pod)
	}
	if want := []string{"15", "17", "18", "19"}; !slices.Equal(pods, want) {
		t.Errorf("kept %q, want %q", pods, want)
	}
	r := Record{Version: version, Revisions: []Revision{s}}
	if text, err := r.Encode(Limit); err != nil || strings.Count(string(text), "Sandbox") != 10 {
		t.Errorf("with room for all it is cut: %s %v", text, err)
	}
}

// However much there is, what is written is a record, and within its limit.
func TestARecordIsWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{Version: version}
		for i := range rapid.IntRange(0, 8).Draw(t, "revisions") {
			r.Revisions = append(r.Revisions, saved(fmt.Sprint(i), rapid.IntRange(0, 20).Draw(t, "nodes"), rapid.IntRange(0, 300).Draw(t, "size"),
				noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at"))*time.Second)))
		}
		limit := rapid.IntRange(100, 20_000).Draw(t, "limit")
		text, err := r.Encode(limit)
		if err != nil || len(text) > limit {
			t.Fatalf("%d bytes of %d: %v", len(text), limit, err)
		}
		decoded(t, text)
	})
}

// However late and much one namespace has failed, another that asks for little has its room in the record.
func TestOneTenantFillsNoRecord(t *testing.T) {
	r := Record{Version: version}
	for i := range 9 {
		r.Revisions = append(r.Revisions, saved(fmt.Sprintf("big/%d", i), 20, 100, noon.Add(time.Minute)))
	}
	r.Revisions = append(r.Revisions, saved("small/w", 1, 100, noon))
	one, err := marshal(&r.Revisions[0])
	placementtest.Must(t, err)
	text, err := r.Encode(2 * (len(one) + len(comma)))
	placementtest.Must(t, err)
	if has := decoded(t, text); has["small/w"] != 1 || has["big/0"] != 20 {
		t.Errorf("it has %v", has)
	}
}
