// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryRefusalIsCounted wants a counter directly before each refusal of a filter: a
// reason that somebody adds would otherwise be missing from what an operator sees.
func TestEveryRefusalIsCounted(t *testing.T) {
	files, err := filepath.Glob("*/filter.go")
	if err != nil || len(files) < 6 {
		t.Fatalf("filters are in %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, refusals := strings.Split(string(text), "\n"), 0
		for i, line := range lines {
			if !strings.Contains(line, "NewStatus(fwk.Unschedulable") {
				continue
			}
			refusals++
			if !strings.HasSuffix(lines[i-1], ".Inc()") {
				t.Errorf("%s:%d: it refuses, and nothing counts it: have refusal.CounterOf make a counter", file, i+1)
			}
		}
		if refusals == 0 {
			t.Errorf("%s refuses nothing", file)
		}
	}
}
