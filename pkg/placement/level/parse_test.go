// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// maxMessage bounds a refusal, in bytes.
const maxMessage = 1300

func spread(label string) level.Level {
	return level.Level{Strategy: level.Spread, Property: level.Property{Label: label}, NodesWithoutKey: level.OwnDomain}
}

func pack(label string) level.Level {
	l := spread(label)
	l.Strategy = level.Pack
	return l
}

func weighted(label string, weights ...level.Weight) level.Level {
	l := spread(label)
	l.Weights = weights
	return l
}

func TestParse(t *testing.T) {
	excluding := weighted("topology.kubernetes.io/zone", level.Weight{Value: "*", Share: 10},
		level.Weight{Value: "zone-a", Share: 70}, level.Weight{Value: "zone-b", Share: 30})
	excluding.NodesWithoutKey = level.Exclude
	packExcluding := pack("rack")
	packExcluding.NodesWithoutKey = level.Exclude

	for _, tc := range []struct {
		name, in  string
		canonical string // "" if it is in itself
		want      []level.Level
	}{
		{name: "one level", in: "spread=rack", want: []level.Level{spread("rack")}},
		{name: "two levels", in: "spread=topology.kubernetes.io/zone,pack=example.com/rack",
			want: []level.Level{spread("topology.kubernetes.io/zone"), pack("example.com/rack")}},
		{name: "docker's spelling", in: "spread=node.labels.rack,spread=engine.labels.Disk", canonical: "spread=rack,spread=Disk",
			want: []level.Level{spread("rack"), spread("Disk")}},
		{name: "node name", in: "spread=zone,spread=node.name", want: []level.Level{spread("zone"), spread("")}},
		{name: "all options", in: "spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.zone-b=30;weight.*=10;nodesWithoutKey=Exclude",
			canonical: "spread=topology.kubernetes.io/zone;weight.*=10;weight.zone-a=70;weight.zone-b=30;nodesWithoutKey=Exclude",
			want:      []level.Level{excluding}},
		{name: "shares by what nodes have", in: "spread=rack ; SHARE = allocatable;nodesWithoutKey=Exclude", canonical: "spread=rack;share=Allocatable;nodesWithoutKey=Exclude",
			want: []level.Level{{Strategy: level.Spread, Property: level.Property{Label: "rack"}, Share: level.Allocatable, NodesWithoutKey: level.Exclude}}},
		{name: "packing without the others", in: "pack=rack;nodesWithoutKey=Exclude", want: []level.Level{packExcluding}},
		{name: "white space and case", in: " Spread = rack ; Weight.b = 2 ;\n NODESWITHOUTKEY = owndomain ,\tPACK=node ", canonical: "spread=rack;weight.b=2,pack=node",
			want: []level.Level{weighted("rack", level.Weight{Value: "b", Share: 2}), pack("node")}},
		{name: "a share for nodes without the label", in: "spread=rack;weight.=5;weight.a=1000000",
			want: []level.Level{weighted("rack", level.Weight{Value: "", Share: 5}, level.Weight{Value: "a", Share: 1_000_000})}},
		{name: "weights are put in order", in: "spread=rack;weight.b=1;weight.A=2;weight.a=3", canonical: "spread=rack;weight.A=2;weight.a=3;weight.b=1",
			want: []level.Level{weighted("rack", level.Weight{Value: "A", Share: 2}, level.Weight{Value: "a", Share: 3}, level.Weight{Value: "b", Share: 1})}},
		{name: "a value with dots", in: "spread=release;weight.1.37.x=2", want: []level.Level{weighted("release", level.Weight{Value: "1.37.x", Share: 2})}},
		{name: "leading zeros are decimal", in: "spread=rack;weight.a=010", canonical: "spread=rack;weight.a=10",
			want: []level.Level{weighted("rack", level.Weight{Value: "a", Share: 10})}},
		{name: "weights of nodes by long names", in: "spread=node.name;weight." + strings.Repeat("a", 60) + ".example.com=2",
			want: []level.Level{weighted("", level.Weight{Value: strings.Repeat("a", 60) + ".example.com", Share: 2})}},
		{name: "labels that differ by case are two", in: "spread=rack,spread=Rack", want: []level.Level{spread("rack"), spread("Rack")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			placementtest.WantParsed(t, level.Parse, level.Format, tc.in, tc.want, tc.canonical)
		})
	}
}

// The messages are what a person sees in an event, so they are told here in full.
func TestParseRefuses(t *testing.T) {
	const (
		levels     = `use spread=PROPERTY or pack=PROPERTY`
		options    = `use weight.VALUE=SHARE, weight.*=SHARE, share=Allocatable or nodesWithoutKey=LastResort, OwnDomain or Exclude`
		properties = `use node.name or the key of a node label, such as topology.kubernetes.io/zone or node.labels.rack`
		keys       = `a label key is at most 63 letters, digits, '-', '_' or '.' with a letter or digit at both ends, ` +
			`after an optional DNS name of at most 253 characters and '/'`
		shares = `a share is a whole number from 1 to 1000000`
		values = `a weight is for a label value (at most 63 letters, digits, '-', '_' or '.' with a letter or digit at both ends), ` +
			`for nodes without the label (nothing after "weight."), or for all other values (*)`
	)
	placementtest.WantRefusals(t, level.Parse, maxMessage, map[string]string{
		"":                         `no levels in "": ` + levels,
		" \n":                      `no levels in " \n": ` + levels,
		",":                        `level 1 "": empty level: remove the comma, or ` + levels,
		"spread=zone,":             `level 2 "": empty level: remove the comma, or ` + levels,
		"spread=zone,,spread=rack": `level 2 "": empty level: remove the comma, or ` + levels,
		"sprd=zone":                `level 1 "sprd=zone": unknown strategy "sprd": ` + levels,
		"spread=a,=zone":           `level 2 "=zone": unknown strategy: ` + levels,
		"zone":                     `level 1 "zone": no strategy before "zone": ` + levels,
		"spread":                   `level 1 "spread": no property after "spread": ` + levels,
		"spread=":                  `level 1 "spread=": no property after "spread": ` + levels,
		"pac\u212a=zone":           "level 1 \"pac\u212a=zone\": unknown strategy \"pac\u212a\": " + levels,
		"spread=zo ne":             `level 1 "spread=zo ne": invalid label key "zo ne": ` + keys,
		"spread=a=b":               `level 1 "spread=a=b": invalid label key "a=b": ` + keys,
		"spread=Example.com/zone":  `level 1 "spread=Example.com/zone": invalid label key "Example.com/zone": ` + keys,
		"spread=node.id":           `level 1 "spread=node.id": unknown property "node.id": ` + properties + `; a node label of this very key is node.labels.node.id`,
		"spread=Engine.foo": `level 1 "spread=Engine.foo": unknown property "Engine.foo": ` + properties +
			`; a node label of this very key is node.labels.Engine.foo`,
		"spread=node.i d":                                                 `level 1 "spread=node.i d": unknown property "node.i d": ` + properties,
		"spread=node.labels.":                                             `level 1 "spread=node.labels.": no label key in property "node.labels.": ` + properties,
		"spread=zone,pack=node.labels.zone":                               `level 2 "pack=node.labels.zone": second level over "zone": level 1 is over the same property; name each property once`,
		"spread=a,pack=b,spread=b":                                        `level 3 "spread=b": second level over "b": level 2 is over the same property; name each property once`,
		"spread=node.name,spread=zone":                                    `level 2 "spread=zone": level below node.name: "zone": level 1 leaves one node in each domain; name node.name last, or not at all`,
		"spread=node.name,spread=NODE.name":                               `level 2 "spread=NODE.name": second level over "node.name": level 1 is over the same property; name each property once`,
		"spread=zone;":                                                    `level 1 "spread=zone;": empty option: remove the semicolon, or ` + options,
		"spread=zone;;nodesWithoutKey=OwnDomain":                          `level 1 "spread=zone;;nodesWithoutKey=OwnDomain": empty option: remove the semicolon, or ` + options,
		"spread=zone;wieght.a=3":                                          `level 1 "spread=zone;wieght.a=3": unknown option "wieght.a": ` + options,
		"spread=zone;weight=3":                                            `level 1 "spread=zone;weight=3": unknown option "weight": ` + options,
		"spread=zone;nodesWithoutKey":                                     `level 1 "spread=zone;nodesWithoutKey": no value in option "nodesWithoutKey": ` + options,
		"spread=zone;share":                                               `level 1 "spread=zone;share": no value in option "share": ` + options,
		"spread=zone;share=Equal":                                         `level 1 "spread=zone;share=Equal": unknown option value "share=Equal": use share=Allocatable`,
		"spread=zone;share=Allocatable;share=Allocatable":                 `level 1 "spread=zone;share=Allocatable;share=Allocatable": second option "share=Allocatable": give share once`,
		"pack=zone;share=Allocatable":                                     `level 1 "pack=zone;share=Allocatable": share at a level that packs "share=Allocatable": only a level that spreads has shares`,
		"spread=zone;weight.a=2;share=Allocatable":                        `level 1 "spread=zone;weight.a=2;share=Allocatable": weight beside share=Allocatable "weight.a=2": use one of the two`,
		"spread=zone;nodesWithoutKey=Skip":                                `level 1 "spread=zone;nodesWithoutKey=Skip": unknown option value "nodesWithoutKey=Skip": use nodesWithoutKey=LastResort, nodesWithoutKey=OwnDomain or nodesWithoutKey=Exclude`,
		"spread=zone;nodesWithoutKey=OwnDomain;nodesWithoutKey=OwnDomain": `level 1 "spread=zone;nodesWithoutKey=OwnDomain;nodesWithoutKey=OwnDomain": second option "nodesWithoutKey=OwnDomain": give nodesWithoutKey once`,
		"spread=zone;weight.a":                                            `level 1 "spread=zone;weight.a": no value in option "weight.a": ` + options,
		"spread=zone;weight.a=":                                           `level 1 "spread=zone;weight.a=": invalid share in "weight.a=": ` + shares,
		"spread=zone;weight.a=0":                                          `level 1 "spread=zone;weight.a=0": invalid share in "weight.a=0": ` + shares,
		"spread=zone;weight.a=-1":                                         `level 1 "spread=zone;weight.a=-1": invalid share in "weight.a=-1": ` + shares,
		"spread=zone;weight.a=+1":                                         `level 1 "spread=zone;weight.a=+1": invalid share in "weight.a=+1": ` + shares,
		"spread=zone;weight.a=1.5":                                        `level 1 "spread=zone;weight.a=1.5": invalid share in "weight.a=1.5": ` + shares,
		"spread=zone;weight.a=0x10":                                       `level 1 "spread=zone;weight.a=0x10": invalid share in "weight.a=0x10": ` + shares,
		"spread=zone;weight.a=1000001":                                    `level 1 "spread=zone;weight.a=1000001": invalid share in "weight.a=1000001": ` + shares,
		"spread=zone;weight.a=99999999999999999999":                       `level 1 "spread=zone;weight.a=99999999999999999999": invalid share in "weight.a=99999999999999999999": ` + shares,
		"spread=zone;weight.-a=1":                                         `level 1 "spread=zone;weight.-a=1": invalid value in "weight.-a=1": ` + values,
		"spread=zone;weight.**=1":                                         `level 1 "spread=zone;weight.**=1": invalid value in "weight.**=1": ` + values,
		"spread=zone;weight.a=1;weight.a=2":                               `level 1 "spread=zone;weight.a=1;weight.a=2": second weight for the same value "weight.a=2": give each value one weight`,
		"spread=node.name;weight.Node=1":                                  `level 1 "spread=node.name;weight.Node=1": invalid value in "weight.Node=1": a weight at node.name is for a node's name, or for all other nodes (*)`,
		"pack=zone;weight.a=1":                                            `level 1 "pack=zone;weight.a=1": weight at a level that packs "weight.a=1": only a level that spreads has weights`,
	})
}

func TestParseBounds(t *testing.T) {
	levels := func(n int) string { return placementtest.Many(n, "spread=label-%d", ",") }
	weights := func(n int) string { return placementtest.Many(n, "weight.v%d=1", ";") }
	for _, in := range []string{
		levels(level.MaxLevels),
		"spread=zone;" + weights(level.MaxWeights),
	} {
		if _, err := level.Parse(in); err != nil {
			t.Errorf("at the bound: %v", err)
		}
	}
	placementtest.WantBounds(t, level.Parse, maxMessage, map[string]string{
		levels(level.MaxLevels + 1):                                      "17 levels in",
		"spread=zone;" + weights(level.MaxWeights+1):                     "257 weights over",
		"spread=" + strings.Repeat("é", 128<<10):                         "invalid label key",
		strings.Repeat("spread=zone,", 20<<10):                           "20481 levels in",
		"spread=zone" + strings.Repeat(";", 256<<10):                     "empty option",
		strings.Repeat("\x00", 256<<10):                                  "no strategy before",
		"spread=node." + strings.Repeat("a", 256<<10):                    "unknown property",
		"spread=zone;nodesWithoutKey=" + strings.Repeat("\xff", 256<<10): "unknown option value",
	})
}

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is valid and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "spread=topology.kubernetes.io/zone,pack=example.com/rack",
		"spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.zone-b=30;weight.*=10;nodesWithoutKey=Exclude",
		"spread=node.labels.rack,spread=engine.labels.Disk,spread=node.name", " Spread = node.labels.node.id ; Weight. = 2 ;\n MISSING = include ",
		"spread=node.labels.node.labels.x/y,pack=node.hostname", "spread=zone;weight.a=1;weight.a=1000001;;",
		"spread=node.name;weight.node-1.example.com=3", "pac\u212a=r\u00e4ck\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		levels, taken := placementtest.CheckParse(t, level.Parse, level.Format, maxMessage, in)
		if !taken {
			return
		}
		if len(levels) == 0 {
			t.Fatalf("Parse(%q) returns no levels", in)
		}
		if err := level.Validate(levels); err != nil {
			t.Errorf("Parse(%q) returns invalid levels: %v", in, err)
		}
	})
}

func ExampleParse() {
	levels, err := level.Parse("spread=topology.kubernetes.io/zone; weight.zone-a=70; weight.*=30, spread=node.labels.rack")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range levels {
		fmt.Println(l)
	}

	_, err = level.Parse("spread=topology.kubernetes.io/zone,sprd=rack")
	fmt.Println(err)
	// Output:
	// spread=topology.kubernetes.io/zone;weight.*=30;weight.zone-a=70
	// spread=rack
	// level 2 "sprd=rack": unknown strategy "sprd": use spread=PROPERTY or pack=PROPERTY
}

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
