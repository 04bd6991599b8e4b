// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

func TestError(t *testing.T) {
	long := strings.Repeat("ä", 100)
	for _, tc := range []struct {
		err  *syntax.Error
		want string
	}{
		{syntax.Refuse("unknown key", "node.rol", "use node.role").In("constraint", 2, "node.rol == worker"),
			`constraint 2 "node.rol == worker": unknown key "node.rol": use node.role`},
		{syntax.Refuse("no operator", "", "use == or !=").In("constraint", 1, "node.role"), `constraint 1 "node.role": no operator: use == or !=`},
		{syntax.Refuse("no platforms in", "", "use OS/ARCH"), `no platforms in "": use OS/ARCH`},
		{syntax.Refuse("unknown key", "a\nb\x00", "use c"), `unknown key "a\nb\x00": use c`},
		{syntax.Refuse("unknown key", long, "use c"), `unknown key "` + strings.Repeat("ä", 50) + `…": use c`},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// A message is one line of printable text and bounded, whatever it quotes.
func FuzzError(f *testing.F) {
	f.Add("constraint", "node.role = x")
	f.Add("\xff\x00\n", strings.Repeat("\u2028", 200))
	f.Fuzz(func(t *testing.T, part, text string) {
		s := syntax.Refuse("bad", part, "mend it").In("entry", 1, text).Error()
		// A byte may take six to be quoted.
		if len(s) > 1400 {
			t.Errorf("%d bytes", len(s))
		}
		for _, r := range s {
			if !strconv.IsPrint(r) {
				t.Errorf("%q is not printable in %q", r, s)
			}
		}
	})
}

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"Node.Role", "node.role", true},
		{"node.rol", "node.role", false},
		{"\u212a", "k", false},
	} {
		if got := syntax.SameWord(tc.a, tc.b); got != tc.want {
			t.Errorf("SameWord(%q, %q) = %t", tc.a, tc.b, got)
		}
	}
	if rest, ok := syntax.CutPrefixFold("NODE.Labels.Rack", "node.labels."); !ok || rest != "Rack" {
		t.Errorf("got %q, %t", rest, ok)
	}
	if rest, ok := syntax.CutPrefixFold("node", "node.labels."); ok || rest != "node" {
		t.Errorf("got %q, %t", rest, ok)
	}
}
