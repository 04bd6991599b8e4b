// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placementtest

import (
	"strings"
	"testing"
)

func TestSeedOf(t *testing.T) {
	for text, want := range map[string]uint64{"": fixedSeed, "7": 7, "18446744073709551615": 1<<64 - 1} {
		if seed, err := seedOf(text); seed != want || err != nil {
			t.Errorf("%q is %d, %v, want %d", text, seed, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "1.5", "Random", "18446744073709551616"} {
		if seed, err := seedOf(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %d, %v", text, seed, err)
		}
	}
	first, err := seedOf("random")
	if err != nil || first == 0 {
		t.Fatalf("random is %d, %v", first, err)
	}
	for range 10 {
		if next, _ := seedOf("random"); next != first {
			return
		}
	}
	t.Errorf("random is %d time and again", first)
}
