// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"iter"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
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

// TestMain settles how hard the properties are tried, unless flags say otherwise.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "5000"})
	os.Exit(m.Run())
}

// plain is the rule in its plainest form: a list of the places of all pods, walked
// anew for every question.
type plain struct {
	limits []limit.Limit
	pods   [][]placement.Value
}

func (p *plain) check(node []placement.Value) limit.Verdict {
	verdict := limit.Room
	for i, l := range p.limits {
		if node[i].Missing {
			return limit.Missing
		}
		same := int64(0)
		for _, pod := range p.pods {
			if pod[i] == node[i] {
				same++
			}
		}
		if same >= l.Pods {
			verdict = limit.Full
		}
	}
	return verdict
}

func drawValues(t *rapid.T, n int) []placement.Value {
	values := make([]placement.Value, n)
	for i := range values {
		values[i] = placement.Value{Text: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "value")}
		if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
			values[i] = placement.Value{Missing: true}
		}
	}
	return values
}

func drawLimits(t *rapid.T) (limits []limit.Limit) {
	for i := range rapid.IntRange(0, 3).Draw(t, "limits") {
		limits = append(limits, of("l"+strconv.Itoa(i), rapid.Int64Range(1, 4).Draw(t, "most")))
	}
	return limits
}

// Whatever comes and goes, on the counts or on clones of them, each answers as if it
// had counted all over again.
func TestCountsAgreeWithCountingAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		first := plain{limits: limits}
		var start []standing
		for range rapid.IntRange(0, 8).Draw(t, "nodes") {
			n := standing{drawValues(t, len(limits)), rapid.Int64Range(0, 3).Draw(t, "pods")}
			start = append(start, n)
			for range n.pods {
				first.pods = append(first.pods, n.values)
			}
		}
		all := []*limit.Counts{limit.Count(limits, each(start))}
		plains := []*plain{&first}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
			p := plains[i]
			switch action := rapid.SampledFrom([]string{"add", "remove", "clone"}).Draw(t, "action"); {
			case action == "add":
				node := drawValues(t, len(limits))
				all[i].Add(node, 1)
				p.pods = append(p.pods, node)
			case action == "remove" && len(p.pods) > 0:
				at := rapid.IntRange(0, len(p.pods)-1).Draw(t, "pod")
				all[i].Add(p.pods[at], -1)
				p.pods = slices.Delete(p.pods, at, at+1)
			case action == "clone":
				all = append(all, all[i].Clone())
				plains = append(plains, &plain{limits, slices.Clone(p.pods)})
			}
		}
		for i, counts := range all {
			for range 5 {
				node := drawValues(t, len(limits))
				if got, want := counts.Check(node), plains[i].check(node); got != want {
					t.Fatalf("counts %d: a node at %v gets %d, want %d", i, node, got, want)
				}
			}
		}
	})
}
