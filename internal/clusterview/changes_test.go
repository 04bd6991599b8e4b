// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"strconv"
	"testing"
)

func TestChanges(t *testing.T) {
	var c Changes
	if got, now, known := c.Since(0); len(got) > 0 || now != 0 || !known {
		t.Errorf("of nothing there is %v at %d, known: %t", got, now, known)
	}
	c.Note("a")
	before := c.Now()
	c.Note("b")
	c.Note("a")
	c.Note("b")
	got, now, known := c.Since(before)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) || now != 4 || !known {
		t.Errorf("since the first there is %v at %d, known: %t", got, now, known)
	}
	if got, _, _ := c.Since(3); !slices.Equal(got, []string{"b"}) {
		t.Errorf("since the third there is %v", got)
	}
	for i := range maxChanged {
		c.Note(strconv.Itoa(i))
	}
	if _, _, known := c.Since(now); known {
		t.Error("what was forgotten is known")
	}
	if got, _, known := c.Since(c.Now() - 1); len(got) != 1 || !known {
		t.Errorf("of the last there is %v, known: %t", got, known)
	}
}
