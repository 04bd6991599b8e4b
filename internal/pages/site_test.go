// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"flag"
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

var siteFlag = flag.String("site", "", "folder of the site that is looked at")

// Every link and anchor of the site leads somewhere, and nothing of it comes from the network.
func TestSite(t *testing.T) {
	if *siteFlag == "" {
		t.Skip("the site has to be made before: `hack/verify-site.sh` makes it and runs this")
	}
	pages, broken, err := BrokenSite(os.DirFS(*siteFlag))
	if err != nil {
		t.Fatal(err)
	}
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
