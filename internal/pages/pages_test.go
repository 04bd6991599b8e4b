// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var update = flag.Bool("update", false, "write docs/README.md by docs/navigation.yaml")

var must = placementtest.Must

// read reads the pages of this repository.
func read(t *testing.T) []Page {
	t.Helper()
	all, err := All(os.DirFS("../.."))
	must(t, err)
	return all
}

// Every link of every page leads to a file that there is, and every anchor to a heading.
func TestLinks(t *testing.T) {
	all := read(t)
	for _, broken := range Broken(os.DirFS("../.."), all) {
		t.Error(broken)
	}
	links := 0
	for i := range all {
		links += len(all[i].Links())
	}
	if len(all) < 30 || links < 300 {
		t.Errorf("%d pages have %d links", len(all), links)
	}
}

// Blocks of commands are marked as such: one that is not would not be run by test/pages.
func TestCommandsAreMarked(t *testing.T) {
	all := read(t)
	for i := range all {
		for _, b := range all[i].Blocks() {
			first, _, _ := strings.Cut(strings.TrimSpace(b.Text), " ")
			if b.Lang == "" && slices.Contains([]string{"kubectl", "helm", "make", "docker", "kind", "go", "git", "curl", "export"}, first) {
				t.Errorf("%s:%d: mark the block as sh", all[i].Path, b.Line)
			}
		}
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	root := fstest.MapFS{"LICENSE": {}, "docs/a.md": {}, "docs/b.md": {}, "docs/x.svg": {}}
	all := []Page{
		{"docs/a.md", "# A page\n\n[b](b.md#two-words) [none](c.md) ![x](x.svg)\n`[code](none.md)`\n\n```sh\n# [block](none.md)\n```\n[l](../LICENSE) [w](https://example.com/#x)\n"},
		{"docs/b.md", "# B\n## Two *words*\n## Two words\n[self](#two-words-1) [no](#two-words-2) [up](a.md#a-page) [no](a.md#block)\n"},
	}
	want := []string{"docs/a.md:3: there is no docs/c.md", "docs/b.md:4: docs/b.md has no heading #two-words-2", "docs/b.md:4: docs/a.md has no heading #block"}
	if got := Broken(root, all); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestAnchor(t *testing.T) {
	for title, want := range map[string]string{
		"`tree`: counts, room":        "tree-counts-room",
		"One pod, from PreFilter on":  "one-pod-from-prefilter-on",
		"[A link](x.md) & snake_case": "a-link--snake_case",
		"Zones of 10, 5 and 2":        "zones-of-10-5-and-2",
	} {
		if got := anchor(title); got != want {
			t.Errorf("%q is %q, want %q", title, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	p := Page{"x.md", "Save this as `web.yaml`:\n\n```yaml\na: 1\n```\n\n* item:\n\n  ```\n  b\n    c\n  ```\n"}
	want := []Block{{"yaml", "a: 1\n", 3, "web.yaml"}, {"", "b\n  c\n", 9, ""}}
	if got := p.Blocks(); !slices.Equal(got, want) {
		t.Errorf("the blocks are %+v, want %+v", got, want)
	}
}

// Readers find every page by docs/navigation.yaml, by which docs/README.md and the site are made. A page that is not there is found by nobody.
func TestNavigation(t *testing.T) {
	root := os.DirFS("../..")
	sections, err := Navigation(root)
	must(t, err)
	entries := make(map[string]int)
	for _, s := range sections {
		for _, e := range s.Pages {
			entries[e.Page]++
			if s.Title == "" || e.Title == "" || e.Wants == "" || strings.HasSuffix(e.Wants, ".") {
				t.Errorf("%s: %s needs a title, and what a reader wants, without a full stop", NavigationFile, e.Page)
			}
		}
	}
	// The front of the repository, which is that of the site, and the page that is made by the navigation.
	without := []string{"README.md", "docs/README.md"}
	for _, p := range read(t) {
		if !slices.Contains(without, p.Path) && entries[p.Path] != 1 {
			t.Errorf("%s is in %s %d times: add it to the section of what its readers want to do, and run `go test ./internal/pages -run Navigation -update`", p.Path, NavigationFile, entries[p.Path])
		}
		delete(entries, p.Path)
	}
	for page := range entries {
		t.Errorf("%s: there is no %s", NavigationFile, page)
	}
	contents := Contents(sections)
	if *update {
		must(t, os.WriteFile("../../docs/README.md", []byte(contents), 0o644))
	}
	if text, err := os.ReadFile("../../docs/README.md"); err != nil || string(text) != contents {
		t.Errorf("docs/README.md is not of %s: run `go test ./internal/pages -run Navigation -update`: %v", NavigationFile, err)
	}
}

var siteFlag = flag.String("site", "", "folder of the site that is looked at")

// Every link and anchor of the site leads somewhere, and nothing of it comes from the network.
func TestSite(t *testing.T) {
	if *siteFlag == "" {
		t.Skip("the site has to be made before: `hack/verify-site.sh` makes it and runs this")
	}
	pages, broken, err := BrokenSite(os.DirFS(*siteFlag))
	must(t, err)
	for _, b := range broken {
		t.Error(b)
	}
	// As many as there are of Markdown.
	if want := len(read(t)); pages != want {
		t.Errorf("the site has %d pages, and the repository %d", pages, want)
	}
}

func TestBrokenSiteIsFound(t *testing.T) {
	root := fstest.MapFS{
		"index.html": {Data: []byte(`<link href="site.css"><script src="https://example.com/x.js"></script><a href="a/b.html#there">b</a><a href="https://example.com/">w</a>`)},
		"a/b.html":   {Data: []byte(`<h1 id="there">b</h1><a href="../index.html#none">none</a><a href="c.html">c</a><a href="#there">self</a><img src="../x.svg">`)},
		"site.css":   {},
	}
	want := []string{
		"a/b.html: ../x.svg: there is no x.svg", "a/b.html: c.html: there is no a/c.html", "a/b.html: index.html has no #none", "index.html loads https://example.com/x.js from elsewhere",
	}
	pages, broken, err := BrokenSite(root)
	if err != nil || pages != 2 || !slices.Equal(broken, want) {
		t.Errorf("%d pages, found %q, want %q, %v", pages, broken, want, err)
	}
}

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
		"# Espalier\n\nEspalier is a Kubernetes scheduler that", "Status: alpha. Kubernetes 1.34 to 1.38", "(docs/evenness.svg)", "(docs/demo.svg)", "## In numbers",
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
