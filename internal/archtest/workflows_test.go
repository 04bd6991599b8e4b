// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Workflows run actions by their commits, with the version beside it for people: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	must(t, err)
	uses, pinned := regexp.MustCompile(`(?m)^.*\buses: *(\S+)(.*)$`), regexp.MustCompile(`^[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	actions := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if action := m[1] + m[2]; len(m[1]) > 2 && m[1][:2] != "./" {
				actions++
				if !pinned.MatchString(action) {
					t.Errorf("%s: %s: write OWNER/NAME@COMMIT # vX.Y.Z", file, action)
				}
			}
		}
	}
	if actions < 6 {
		t.Errorf("the workflows use %d actions", actions)
	}
}
