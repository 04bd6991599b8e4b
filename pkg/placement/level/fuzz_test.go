// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is valid and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"",
		"spread=topology.kubernetes.io/zone,pack=example.com/rack",
		"spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.zone-b=30;weight.*=10;nodesWithoutKey=Exclude",
		"spread=node.labels.rack,spread=engine.labels.Disk,spread=node.name",
		" Spread = node.labels.node.id ; Weight. = 2 ;\n MISSING = include ",
		"spread=node.labels.node.labels.x/y,pack=node.hostname",
		"spread=zone;weight.a=1;weight.a=1000001;;",
		"spread=node.name;weight.node-1.example.com=3",
		"pac\u212a=r\u00e4ck\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		levels, err := level.Parse(in)
		if err != nil {
			if levels != nil {
				t.Errorf("Parse(%q) returns levels and an error", in)
			}
			placementtest.CheckRefusal(t, err, maxMessage)
			return
		}
		if len(levels) == 0 {
			t.Fatalf("Parse(%q) returns no levels", in)
		}
		if err := level.Validate(levels); err != nil {
			t.Errorf("Parse(%q) returns invalid levels: %v", in, err)
		}
		text := level.Format(levels)
		again, err := level.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) is formatted as %q, which is refused: %v", in, text, err)
		}
		if diff := cmp.Diff(levels, again); diff != "" {
			t.Errorf("Parse(%q) is formatted as %q, which is something else:\n%s", in, text, diff)
		}
		if s := level.Format(again); s != text {
			t.Errorf("Format(%q) is %q the second time", text, s)
		}
	})
}
