// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// maxMessage bounds a refusal, in bytes.
const maxMessage = 1300

func of(label string, pods int64) limit.Limit {
	return limit.Limit{Property: level.Property{Label: label}, Pods: pods}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []limit.Limit
		text string // canonical
	}{
		{"kubernetes.io/hostname=1", []limit.Limit{of("kubernetes.io/hostname", 1)}, "kubernetes.io/hostname=1"},
		{"kubernetes.io/hostname=1,example.com/rack=2", []limit.Limit{of("kubernetes.io/hostname", 1), of("example.com/rack", 2)}, "kubernetes.io/hostname=1,example.com/rack=2"},
		{"rack=2,host=1", []limit.Limit{of("rack", 2), of("host", 1)}, "rack=2,host=1"},
		{" rack = 2 ,\n\thost=1 ", []limit.Limit{of("rack", 2), of("host", 1)}, "rack=2,host=1"},
		{"Node.Name=3", []limit.Limit{of("", 3)}, "node.name=3"},
		{"node.labels.Rack=1,engine.labels.disk=2", []limit.Limit{of("Rack", 1), of("disk", 2)}, "Rack=1,disk=2"},
		{"node.labels.node.id=1", []limit.Limit{of("node.id", 1)}, "node.labels.node.id=1"},
		{"rack=1000000", []limit.Limit{of("rack", limit.MaxPods)}, "rack=1000000"},
		{"rack=007", []limit.Limit{of("rack", 7)}, "rack=7"},
	} {
		placementtest.WantParsed(t, limit.Parse, limit.Format, tc.in, tc.want, tc.text)
	}
}

func TestParseRefuses(t *testing.T) {
	placementtest.WantRefusals(t, limit.Parse, maxMessage, map[string]string{
		"":                    `no limits in "": use PROPERTY=PODS, such as kubernetes.io/hostname=1`,
		" \n":                 `no limits in " \n": use PROPERTY=PODS, such as kubernetes.io/hostname=1`, //nolint:gocritic // white space alone is the input
		"rack":                `limit 1 "rack": no number of pods after "rack": use PROPERTY=PODS, such as kubernetes.io/hostname=1`,
		"rack=":               `limit 1 "rack=": no number of pods after "rack": use PROPERTY=PODS, such as kubernetes.io/hostname=1`,
		"=1":                  `limit 1 "=1": no property before "=": use PROPERTY=PODS, such as kubernetes.io/hostname=1`,
		"rack=1,":             `limit 2 "": empty limit: remove the comma, or use PROPERTY=PODS, such as kubernetes.io/hostname=1`,
		"rack=two":            `limit 1 "rack=two": invalid number of pods "two": a limit is a whole number of pods from 1 to 1000000`,
		"rack=0":              `limit 1 "rack=0": invalid number of pods "0": a limit is a whole number of pods from 1 to 1000000`,
		"rack=-1":             `limit 1 "rack=-1": invalid number of pods "-1": a limit is a whole number of pods from 1 to 1000000`,
		"rack=+1":             `limit 1 "rack=+1": invalid number of pods "+1": a limit is a whole number of pods from 1 to 1000000`,
		"rack==1":             `limit 1 "rack==1": invalid number of pods "=1": a limit is a whole number of pods from 1 to 1000000`,
		"rack=1.5":            `limit 1 "rack=1.5": invalid number of pods "1.5": a limit is a whole number of pods from 1 to 1000000`,
		"rack=1e3":            `limit 1 "rack=1e3": invalid number of pods "1e3": a limit is a whole number of pods from 1 to 1000000`,
		"zone=3,rack=1000001": `limit 2 "rack=1000001": invalid number of pods "1000001": ` + `a limit is a whole number of pods from 1 to 1000000`,
		"rack=18446744073709551617": `limit 1 "rack=18446744073709551617": invalid number of pods "18446744073709551617": ` +
			`a limit is a whole number of pods from 1 to 1000000`,
		"rack=1;host=2": `limit 1 "rack=1;host=2": invalid number of pods "1;host=2": a limit is a whole number of pods from 1 to 1000000`,
		"rack=1,node.hostname=2": `limit 2 "node.hostname=2": unknown property "node.hostname": use node.name or the key of a node label, ` +
			`such as topology.kubernetes.io/zone or node.labels.rack; a node label of this very key is node.labels.node.hostname`,
		"rack=1,host=1,node.labels.rack=2": `limit 3 "node.labels.rack=2": second limit over "rack": ` +
			`limit 1 is over the same property; name each property once`,
	})
}

func TestParseBounds(t *testing.T) {
	many := func(n int) string { return placementtest.Many(n, "label-%d=1", ",") }
	if _, err := limit.Parse(many(limit.MaxLimits)); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	placementtest.WantBounds(t, limit.Parse, maxMessage, map[string]string{
		many(limit.MaxLimits + 1):                      "17 limits in",
		strings.Repeat("rack=1,", 20<<10):              "20481 limits in",
		strings.Repeat("é", 128<<10) + "=1":            "invalid label key",
		"rack=" + strings.Repeat("9", 256<<10):         "invalid number of pods",
		strings.Repeat("\x00", 256<<10):                "no number of pods after",
		"node." + strings.Repeat("a", 256<<10) + "=1":  "unknown property",
		"rack=1\n,host=" + strings.Repeat("\xff", 200): "invalid number of pods",
	})
}

func TestValidate(t *testing.T) {
	var tooMany []limit.Limit
	for i := range limit.MaxLimits + 1 {
		tooMany = append(tooMany, of("l"+strconv.Itoa(i), 1))
	}
	for _, tc := range []struct {
		name   string
		limits []limit.Limit
		want   string // part of the error; "" for valid
	}{
		{"none", nil, ""},
		{"good", []limit.Limit{of("", 1), of("node.name", 1), of("example.com/rack", 2)}, ""},
		{"as many as there may be", tooMany[:limit.MaxLimits], ""},
		{"one too many", tooMany, `17 limits in "l0=1,l1=1,`},
		{"of nothing", []limit.Limit{of("rack", 0)}, `limit 1 "rack=0": invalid number of pods "0"`},
		{"below nothing", []limit.Limit{of("zone", 1), of("rack", -5)}, `limit 2 "rack=-5": invalid number of pods "-5"`},
		{"beyond reason", []limit.Limit{of("rack", limit.MaxPods+1)}, `invalid number of pods "1000001"`},
		{"no label key", []limit.Limit{of("a b", 1)}, `limit 1 "a b=1": invalid label key "a b"`},
		{"no label key, reserved", []limit.Limit{of("node.labels.-", 1)}, `invalid label key "node.labels.-"`},
		{"a property twice", []limit.Limit{of("rack", 1), of("rack", 2)}, `limit 2 "rack=2": second limit over "rack": limit 1`},
	} {
		err := limit.Validate(tc.limits)
		if err == nil {
			if tc.want != "" {
				t.Errorf("%s: it is valid", tc.name)
			}
			continue
		}
		placementtest.CheckRefusal(t, err, maxMessage)
		if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is valid and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "kubernetes.io/hostname=1,example.com/rack=2", " node.name = 3 ,\tengine.labels.Disk = 0002",
		"node.labels.node.id=1,node.labels.node.labels.x/y=1000000", "rack=1,rack=2,,=", "rack==1;2", "node.hostname=9223372036854775808",
		"r\u00e4ck=1\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		limits, taken := placementtest.CheckParse(t, limit.Parse, limit.Format, maxMessage, in)
		if !taken {
			return
		}
		if len(limits) == 0 {
			t.Fatalf("Parse(%q) returns no limits", in)
		}
		if err := limit.Validate(limits); err != nil {
			t.Errorf("Parse(%q) returns invalid limits: %v", in, err)
		}
	})
}

func ExampleParse() {
	limits, err := limit.Parse("kubernetes.io/hostname = 1, node.labels.rack = 2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range limits {
		fmt.Println(l)
	}

	_, err = limit.Parse("kubernetes.io/hostname=1,rack=two")
	fmt.Println(err)
	// Output:
	// kubernetes.io/hostname=1
	// rack=2
	// limit 2 "rack=two": invalid number of pods "two": a limit is a whole number of pods from 1 to 1000000
}

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

// plain is the rule in its plainest form: a list of the places of all pods, walked anew for every question.
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

// Whatever comes and goes, on the counts or on clones of them, each answers as if it had counted all over again.
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
