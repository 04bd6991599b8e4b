// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is valid and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"",
		"kubernetes.io/hostname=1,example.com/rack=2",
		" node.name = 3 ,\tengine.labels.Disk = 0002",
		"node.labels.node.id=1,node.labels.node.labels.x/y=1000000",
		"rack=1,rack=2,,=",
		"rack==1;2",
		"node.hostname=9223372036854775808",
		"r\u00e4ck=1\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		limits, err := limit.Parse(in)
		if err != nil {
			if limits != nil {
				t.Errorf("Parse(%q) returns limits and an error", in)
			}
			placementtest.CheckRefusal(t, err, maxMessage)
			return
		}
		if len(limits) == 0 {
			t.Fatalf("Parse(%q) returns no limits", in)
		}
		if err := limit.Validate(limits); err != nil {
			t.Errorf("Parse(%q) returns invalid limits: %v", in, err)
		}
		text := limit.Format(limits)
		again, err := limit.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) is formatted as %q, which is refused: %v", in, text, err)
		}
		if diff := cmp.Diff(limits, again); diff != "" {
			t.Errorf("Parse(%q) is formatted as %q, which is something else:\n%s", in, text, diff)
		}
	})
}
