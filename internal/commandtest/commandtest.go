// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandtest gives commands their arguments in tests, and judges how they tell
// of mistakes.
package commandtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Run executes a command, which must end by itself, and returns what it prints.
func Run(t testing.TB, cmd *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// WantMistake fails the test unless there is an error, of one line, that holds all the parts.
func WantMistake(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it ended well")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is more than one line: %v", err)
	}
}
