// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "1000"})
	m.Run()
}

func TestSpelling(t *testing.T) {
	for text, d := range map[string]Decision{
		"fast": {Fast: true},
		"full": {},
		"fast: zone a=3 before b=4; rack r1=1/2 tied with r2=1/2; node n7=0 before n9=0 (soft taint)": {Fast: true, Steps: []Step{
			{"zone", Option{"a", 3, 3, ""}, Option{"b", 4, 4, ""}, Before},
			{"rack", Option{"r1", 1, 2, ""}, Option{"r2", 1, 2, ""}, Tied},
			{Node, Option{"n7", 0, 0, ""}, Option{"n9", 0, 0, "soft taint"}, Before},
		}},
		"full: zone (none)=1 (last resort)": {Steps: []Step{{Level: "zone", Chosen: Option{NoValue, 1, 1, "last resort"}}}},
		"full: zone a=2 instead of b=1":     {Steps: []Step{{"zone", Option{"a", 2, 2, ""}, Option{"b", 1, 1, ""}, InsteadOf}}},
		"fast: zone a=0; ...":               {Fast: true, Cut: true, Steps: []Step{{Level: "zone", Chosen: Option{Name: "a"}}}},
		"fast: ...":                         {Fast: true, Cut: true},
	} {
		if got := d.String(); got != text {
			t.Errorf("it is written %q, want %q", got, text)
		}
		if got, err := Parse(text); err != nil || !cmp.Equal(got, d) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "slow", "fast:", "fast: ", "fast; zone a=1", "fast: zone", "fast: zone a", "fast: zone a=", "fast: zone a=-1", "fast: zone a=01", "fast: zone a=1/1",
		"fast: zone a=4294967296", "fast: zone a=1/9999999999", "fast: zone a=1 before", "fast: zone a=1 after b=2", "fast: zone a=1 ()", "fast: zone  a=1",
		"fast: zone a=1;node n=1", "fast: ...; zone a=1", "fast: zone a=1; ", "full: zone a=1 before b=2 before c=3", "fast: zone " + strings.Repeat("a", Max) + "=1",
	} {
		if d, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, d)
		}
	}
}

// What is written can be read, and has as many of the first steps as fit.
func TestPropertyOfSpelling(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?`)
	option := rapid.Custom(func(t *rapid.T) Option {
		revision := rapid.Int32Range(0, 1<<31-1).Draw(t, "revision")
		return Option{
			name.Draw(t, "name"), revision, rapid.Int32Range(revision, 1<<31-1).Draw(t, "workload"),
			rapid.SampledFrom([]string{"", "faulty", "soft taint, last resort"}).Draw(t, "state"),
		}
	})
	step := rapid.Custom(func(t *rapid.T) Step {
		s := Step{Level: name.Draw(t, "level"), Chosen: option.Draw(t, "chosen")}
		if rapid.Bool().Draw(t, "others") {
			s.Next, s.Relation = option.Draw(t, "next"), rapid.SampledFrom([]Relation{Before, Tied, InsteadOf}).Draw(t, "relation")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		d := Decision{Fast: rapid.Bool().Draw(t, "fast"), Steps: rapid.SliceOfN(step, 0, 17).Draw(t, "steps")}
		text := d.String()
		if len(text) > Max {
			t.Fatalf("%q has %d bytes", text, len(text))
		}
		got, err := Parse(text)
		placementtest.Must(t, err)
		if got.Cut != (len(got.Steps) < len(d.Steps)) || got.Fast != d.Fast {
			t.Fatalf("%q has %d of %d steps", text, len(got.Steps), len(d.Steps))
		}
		for i := range got.Steps {
			if got.Steps[i] != d.Steps[i] {
				t.Fatalf("step %d is %+v, want %+v", i, got.Steps[i], d.Steps[i])
			}
		}
	})
}
