// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/browser"
)

// viewBox is the size of a picture, which fills a window of that size.
var viewBox = regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`)

// The pictures of the pages can be read: no label lies on another one, and they are light or dark as one likes.
func TestPicturesOfPages(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	pictures, err := filepath.Glob(filepath.Join(world.root, "docs", "*.svg"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	dir := t.TempDir()
	for _, picture := range pictures {
		svg, err := os.ReadFile(picture)
		fatal(t, err)
		name := filepath.Base(picture)
		if name != "demo.svg" { // its lines come and go, see cmd/demo
			labels, wrong, err := b.Labels(t.Context(), append([]byte("<!DOCTYPE html><body>"), svg...), 1000, 700)
			fatal(t, err)
			for _, w := range wrong {
				t.Errorf("%s: %s", name, w)
			}
			if labels < 10 {
				t.Errorf("%s has %d labels", name, labels)
			}
		}
		size := viewBox.FindSubmatch(svg)
		if size == nil {
			t.Fatalf("%s has no viewBox", name)
		}
		width, _ := strconv.Atoi(string(size[1])) // digits, as the height
		height, _ := strconv.Atoi(string(size[2]))
		if err := b.Look(t.Context(), picture, width, height, dir); err != nil {
			t.Error(err)
		}
	}
}

// The site can be read from its folder, without a network: pages, navigation, and what is found by a word.
func TestSiteInABrowser(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	site := filepath.Join(t.TempDir(), "site")
	fatal(t, shell(t.Context(), "hack/site.sh "+site))
	dir := t.TempDir()
	for _, page := range []string{"index.html", "spread.html", "reference/policies.html"} {
		if err := b.Look(t.Context(), filepath.Join(site, page), 1280, 1000, dir); err != nil {
			t.Error(err)
		}
	}
	// What is typed into the search is looked for in all pages.
	page, err := os.ReadFile(filepath.Join(site, "index.html"))
	fatal(t, err)
	file := filepath.Join(site, "search-test.html")
	page = append(page, `<script>addEventListener("load", () => { const i = document.getElementById("find"); i.value = "kustomize overlay"; i.focus(); i.dispatchEvent(new Event("input"));
		setTimeout(() => { const pre = document.createElement("pre"); pre.id = "espalier-found"; pre.textContent = JSON.stringify([...document.querySelectorAll("#found a")].map(a => a.textContent)); document.body.append(pre); }, 2000); })</script>`...)
	fatal(t, os.WriteFile(file, page, 0o600))
	var found []string
	fatal(t, b.Found(t.Context(), browser.Page{File: file, Width: 1280, Height: 1000}, &found))
	if len(found) == 0 || found[0] != "Install" {
		t.Errorf("kustomize overlay is found in %q", found)
	}
}
