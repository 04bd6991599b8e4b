// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"strings"
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

	for _, tc := range []struct {
		name   string
		levels []level.Level
		want   string // "" for valid
	}{
		{"no levels", nil, ""},
		{"two levels", []level.Level{weighted("zone", w("", 1), w("*", 2), w("a", 3)), pack("")}, ""},
		{"no strategy", []level.Level{noStrategy}, `level 1 "=zone": unknown strategy: use spread=PROPERTY or pack=PROPERTY`},
		{"no word for nodes without the key", []level.Level{spread("zone"), noWord},
			`level 2 "spread=zone;nodesWithoutKey=": unknown option value "nodesWithoutKey=": use nodesWithoutKey=LastResort, nodesWithoutKey=OwnDomain or nodesWithoutKey=Exclude`},
		{"bad key", []level.Level{spread("a b")},
			`level 1 "spread=a b": invalid label key "a b": a label key is at most 63 letters, digits, '-', '_' or '.' with a letter ` +
				`or digit at both ends, after an optional DNS name of at most 253 characters and '/'`},
		{"weights out of order", []level.Level{weighted("zone", w("b", 1), w("a", 1))},
			`level 1 "spread=zone;weight.b=1;weight.a=1": weight out of order "weight.a=1": weights are sorted by their values`},
		{"share of nothing", []level.Level{weighted("zone", w("a", 0))},
			`level 1 "spread=zone;weight.a=0": invalid share in "weight.a=0": a share is a whole number from 1 to 1000000`},
		{"a property twice", []level.Level{spread("zone"), spread("rack"), pack("zone")},
			`level 3 "pack=zone": second level over "zone": level 1 is over the same property; name each property once`},
	} {
		got := ""
		if err := level.Validate(tc.levels); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: Validate:\n got %s\nwant %s", tc.name, got, tc.want)
		}
		// One level by itself is judged like one among others.
		for i, l := range tc.levels {
			if err := l.Validate(); err != nil && level.Validate(tc.levels[i:i+1]) == nil {
				t.Errorf("%s: level %d alone: %v", tc.name, i+1, err)
			}
		}
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

func TestParseProperty(t *testing.T) {
	long := strings.Repeat("a", 63)
	domain := strings.Repeat("a.", 126) + "a" // 253 characters
	for _, tc := range []struct{ in, label, canonical string }{
		{"node.name", "", "node.name"},
		{"NODE.Name", "", "node.name"},
		{"rack", "rack", "rack"},
		{"Rack_1.b-2", "Rack_1.b-2", "Rack_1.b-2"},
		{"7", "7", "7"},
		{"node", "node", "node"},
		{"nodes.x", "nodes.x", "nodes.x"},
		{"topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
		{"node.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"},
		{"node.labels.rack", "rack", "rack"},
		{"Node.Labels.Rack", "Rack", "Rack"},
		{"engine.labels.rack", "rack", "rack"},
		{"ENGINE.LABELS.operatingsystem", "operatingsystem", "operatingsystem"},
		{"node.labels.example.com/rack", "example.com/rack", "example.com/rack"},
		{"node.labels.node.id", "node.id", "node.labels.node.id"},
		{"engine.labels.engine.x", "engine.x", "node.labels.engine.x"},
		{"node.labels.node.name", "node.name", "node.labels.node.name"},
		{"node.labels.node.labels.x", "node.labels.x", "node.labels.node.labels.x"},
		{"node.labels.node.labels.x/y", "node.labels.x/y", "node.labels.node.labels.x/y"},
		{"node.labels.Engine.Labels.x", "Engine.Labels.x", "node.labels.Engine.Labels.x"},
		{long, long, long},
		{domain + "/" + long, domain + "/" + long, domain + "/" + long},
	} {
		got, err := level.ParseProperty(tc.in)
		if err != nil {
			t.Errorf("ParseProperty(%q): %v", tc.in, err)
			continue
		}
		if got.Label != tc.label || got.String() != tc.canonical {
			t.Errorf("ParseProperty(%q) = label %q, text %q; want %q, %q", tc.in, got.Label, got, tc.label, tc.canonical)
		}
		if again, err := level.ParseProperty(got.String()); err != nil || again != got {
			t.Errorf("ParseProperty(%q) = %v, %v; want what it was made from", got, again, err)
		}
	}
}

func TestParsePropertyRefuses(t *testing.T) {
	for _, in := range []string{
		"", " ", " rack", "rack ", "-rack", "rack-", "_x", "x.", "ra ck", "r\u00e4ck", "a/b/c", "/rack", "example.com/",
		"Example.com/rack", "exa_mple.com/rack", "example..com/rack", "-a.com/rack", "a-.com/rack", ".com/x", "a./x",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "/rack", "a/" + strings.Repeat("a", 64),
		"node.", "node.id", "node.ip", "node.hostname", "node.role", "node.platform.os", "Node.Hostname", "node.labels", "node.label.rack",
		"engine.", "engine.foo", "engine.labels", "ENGINE.Foo", "node.labels.", "engine.labels.", "node.labels.-x", "node.labels. x",
		"node.labels.a b", "engine.labels.é", "*",
	} {
		got, err := level.ParseProperty(in)
		if err == nil {
			t.Errorf("ParseProperty(%q) = %v, want an error", in, got)
			continue
		}
		placementtest.CheckRefusal(t, err, maxMessage)
	}
}
