// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// WantEqual fails the test unless two values are equal, and says where they are not.
func WantEqual(t testing.TB, want, got any) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Error("want -, got +:\n" + d)
	}
}
