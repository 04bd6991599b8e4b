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

// cells are those of the first row of a table whose first cell begins so, behind a line of the page that has a word.
func cells(t *testing.T, page, behind, begins string) []string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	must(t, err)
	_, rest, found := strings.Cut(string(text), behind)
	if !found {
		t.Fatalf("%s has no %q", page, behind)
	}
	for line := range strings.Lines(rest) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if len(row) > 2 && strings.HasPrefix(row[0], begins) {
			return row
		}
	}
	t.Fatalf("%s has no row %q behind %q", page, begins, behind)
	return nil
}

// The figures of the README are those of the pages that say how they were measured: the stock scheduler's, and ours.
func TestFiguresOfTheReadme(t *testing.T) {
	for _, f := range []struct {
		says, page, behind, row string
		stock, ours             int // columns
	}{
		{"[pods by zone](docs/evenness.md): 61 pods", "docs/evenness.md", "| case |", "61 pods on zones of 10, 5 and 2 nodes, constraints over hosts", 1, 2},
		{"pods by zone: these 61 pods without constraints", "docs/evenness.md", "| case |", "61 pods on these zones, nothing asked, scaled to 31", 1, 2},
		{"pods by zone: 20 pods on zones", "docs/evenness.md", "| case |", "20 pods on zones of 4, 3 and 2 nodes, after three rolling updates", 1, 2},
		{"pods by zone: 6 pods on three zones", "docs/evenness.md", "| case |", "6 pods on three zones, scaled to 18", 1, 2},
		{"failed pods in a minute", "docs/evenness.md", "| case |", "60 pods, one node of 20 refuses every pod", 1, 2},
		{"[pods/s](docs/performance.md#figures)", "docs/performance.md", "pods/s: stock |", "Spread2", 2, 4},
		{"CPU seconds of the scheduler", "docs/performance.md", "CPU s per 1,000 pods: stock |", "Spread2", 5, 7},
	} {
		shown, measured := cells(t, "README.md", "## In numbers", f.says), cells(t, f.page, f.behind, f.row)
		if shown[1] != measured[f.stock] || shown[2] != measured[f.ours] {
			t.Errorf("README.md: %s: it has %s and %s, and %s has %s and %s", f.says, shown[1], shown[2], f.page, measured[f.stock], measured[f.ours])
		}
	}
}

// The first screen of the README has what somebody decides by, in this order, and is short.
func TestFirstScreenOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	at := []int{}
	for _, part := range []string{
		"# Espalier\n\nEspalier is a Kubernetes scheduler that", "Status: alpha. Kubernetes 1.37", "(docs/evenness.svg)", "(docs/demo.svg)", "## In numbers",
		"## Install it", "**Two schedulers on the same nodes can promise the same capacity\n  twice**", "`NodePool`", "`ReplaceDefault`", "helm install", "## Use it", "+      schedulerName:", "## Do not use it if",
	} {
		i := strings.Index(string(text), part)
		if i < 0 {
			t.Errorf("README.md does not have %q", part)
		}
		at = append(at, i)
	}
	if !slices.IsSorted(at) {
		t.Errorf("its parts are not in their order: %v", at)
	}
	if words := len(strings.Fields(string(text))); words > 900 {
		t.Errorf("it has %d words, and may have 900", words)
	}
}

// The changelog has a section of what is to come, and then one of each version, the newest first, by what kind of change it is.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	must(t, err)
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
