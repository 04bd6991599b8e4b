// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Levels reads a list of levels, which is empty for "".
func Levels(t testing.TB, text string) []level.Level {
	t.Helper()
	if text == "" {
		return nil
	}
	levels, err := level.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return levels
}
