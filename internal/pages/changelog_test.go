// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// The changelog has a section of what is to come, and then one of each version, the newest first, by what kind of change it is.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(heads) < 2 || heads[0][1] != "[Unreleased]" {
		t.Fatalf("the sections are %q", heads)
	}
	var before *version.Version
	for _, head := range heads[1:] {
		m := regexp.MustCompile(`^\[(\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?$`).FindStringSubmatch(head[1])
		if m == nil {
			t.Fatalf("%q is no version: write [X.Y.Z], and - YYYY-MM-DD once it is tagged", head[1])
		}
		is := version.MustParseSemantic(m[1])
		if before != nil && !is.LessThan(before) {
			t.Errorf("%s is behind %s", is, before)
		}
		before = is
	}
	for line := range strings.Lines(string(text)) {
		if kind, is := strings.CutPrefix(strings.TrimSpace(line), "### "); is && !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, kind) {
			t.Errorf("%q is no kind of change", kind)
		}
	}
}
