// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const docs = "../../docs"

// TestDocsAreWhatIsPlayed plays everything again: the tables and the pictures in docs must come out as they are there.
func TestDocsAreWhatIsPlayed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	files, err := results(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(docs, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what is played (%v): run make simulate", name, err)
		}
	}
}

func TestPageWithoutTheLines(t *testing.T) {
	if _, err := replaced("# A page\n", &figure{name: "contention-fill"}); err == nil || !strings.Contains(err.Error(), "<!-- begin of contention-fill -->") {
		t.Errorf("%v", err)
	}
}
