// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestValidate(t *testing.T) {
	w := func(value string, share int64) level.Weight { return level.Weight{Value: value, Share: share} }
	noWord := spread("zone")
	noWord.NodesWithoutKey = ""
	noStrategy := spread("zone")
	noStrategy.Strategy = ""
	weightedPack := pack("zone")
	weightedPack.Weights = []level.Weight{w("a", 1)}

	for _, tc := range []struct {
		name   string
		levels []level.Level
		want   string // "" for valid
	}{
		{"no levels", nil, ""},
		{"two levels", []level.Level{weighted("zone", w("", 1), w("*", 2), w("a", 3)), pack("")}, ""},
		{"no strategy", []level.Level{noStrategy},
			`level 1 "=zone": unknown strategy: use spread=PROPERTY or pack=PROPERTY`},
		{"no word for nodes without the key", []level.Level{spread("zone"), noWord},
			`level 2 "spread=zone;nodesWithoutKey=": unknown option value "nodesWithoutKey=": use nodesWithoutKey=LastResort, nodesWithoutKey=OwnDomain or nodesWithoutKey=Exclude`},
		{"bad key", []level.Level{spread("a b")},
			`level 1 "spread=a b": invalid label key "a b": a label key is at most 63 letters, digits, '-', '_' or '.' with a letter ` +
				`or digit at both ends, after an optional DNS name of at most 253 characters and '/'`},
		{"weights that pack", []level.Level{weightedPack},
			`level 1 "pack=zone;weight.a=1": weight at a level that packs "weight.a=1": only a level that spreads has weights`},
		{"weights out of order", []level.Level{weighted("zone", w("b", 1), w("a", 1))},
			`level 1 "spread=zone;weight.b=1;weight.a=1": weight out of order "weight.a=1": weights are sorted by their values`},
		{"weight twice", []level.Level{weighted("zone", w("a", 1), w("a", 1))},
			`level 1 "spread=zone;weight.a=1;weight.a=1": second weight for the same value "weight.a=1": give each value one weight`},
		{"share of nothing", []level.Level{weighted("zone", w("a", 0))},
			`level 1 "spread=zone;weight.a=0": invalid share in "weight.a=0": a share is a whole number from 1 to 1000000`},
		{"a property twice", []level.Level{spread("zone"), spread("rack"), pack("zone")},
			`level 3 "pack=zone": second level over "zone": level 1 is over the same property; name each property once`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := level.Validate(tc.levels); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Validate:\n got %s\nwant %s", got, tc.want)
			}
			// One level by itself is judged like one among others.
			for i, l := range tc.levels {
				if err := l.Validate(); err != nil && level.Validate(tc.levels[i:i+1]) == nil {
					t.Errorf("level %d alone: %v", i+1, err)
				}
			}
		})
	}

	var tooMany []level.Level
	for i := range level.MaxLevels + 1 {
		tooMany = append(tooMany, spread("l"+string(rune('a'+i))))
	}
	if err := level.Validate(tooMany[:level.MaxLevels]); err != nil {
		t.Errorf("as many levels as there may be: %v", err)
	}
	if err := level.Validate(tooMany); err == nil {
		t.Error("one level too many is valid")
	} else {
		placementtest.CheckRefusal(t, err, maxMessage)
	}
}

func TestShare(t *testing.T) {
	w := func(value string, share int64) level.Weight { return level.Weight{Value: value, Share: share} }
	plain := spread("zone")
	listed := weighted("zone", w("", 5), w("a", 70), w("b", 30))
	others := weighted("zone", w("*", 10), w("a", 70))

	for _, tc := range []struct {
		level  level.Level
		value  string
		share  int64
		listed bool
	}{
		{plain, "a", 1, false},
		{plain, "", 1, false},
		{listed, "a", 70, true},
		{listed, "b", 30, true},
		{listed, "", 5, true},
		{listed, "c", 1, false},
		{others, "a", 70, true},
		{others, "c", 10, false},
		{others, "", 10, false},
		{others, level.Others, 10, true},
	} {
		share, ok := tc.level.ShareOf(tc.value)
		if share != tc.share || ok != tc.listed {
			t.Errorf("%v: Share(%q) = %d, %v; want %d, %v", tc.level, tc.value, share, ok, tc.share, tc.listed)
		}
	}
	for _, tc := range []struct {
		level level.Level
		want  bool
	}{{plain, false}, {listed, false}, {others, true}} {
		if got := tc.level.HasOthers(); got != tc.want {
			t.Errorf("%v: HasOthers() = %v, want %v", tc.level, got, tc.want)
		}
	}
}
