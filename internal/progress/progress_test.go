// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
	"time"
)

// show plays 16 seconds, and returns what is written.
func show(terminal bool) string {
	now := time.Unix(0, 0)
	var out strings.Builder
	b := newBar(&out, terminal, func() time.Time { return now })
	for i := range 32 { // each half a second
		b.Show(i, 32, "nodes Ready")
		if i == 6 {
			b.Line("a line")
		}
		now = now.Add(500 * time.Millisecond)
	}
	b.Show(0, 0, "thinking")
	b.End()
	b.End()
	return out.String()
}

func TestInALog(t *testing.T) {
	if got, want := show(false), "4 of 32: nodes Ready\na line\n26 of 32: nodes Ready\n"; got != want {
		t.Errorf("a log has\n%swant\n%s", got, want)
	}
}

func TestOnATerminal(t *testing.T) {
	got := show(true)
	for want, times := range map[string]int{
		anew + "[=============                 ] 14 of 32: nodes Ready": 1,
		anew + "a line\n": 1,
		anew + "[                              ] thinking" + anew: 1,
		"of 32": 28,
		"\n":    1,
	} {
		if n := strings.Count(got, want); n != times {
			t.Errorf("%q is there %d times, want %d:\n%q", want, n, times, got)
		}
	}
}
