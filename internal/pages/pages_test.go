// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write docs/README.md by docs/navigation.yaml")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
	want := []string{
		"docs/a.md:3: there is no docs/c.md", "docs/b.md:4: docs/b.md has no heading #two-words-2", "docs/b.md:4: docs/a.md has no heading #block",
	}
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
