// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// coined are words that are not the field's, each with the field's word for the same.
// They stood in this code once, and are not to come back.
var coined = []struct{ word, field string }{
	{`grove|forest`, "cache"},
	{`seedlings?|offshoots?`, "build, clone"},
	{`fell(s|ed)`, "evict"},
	{`census(es)?`, "index of pod counts"},
	{`lens`, "values of the levels"},
	{`doubters?|doubted`, "invalidate"},
	{`near-?sighted|far-?sighted`, "node-local, cluster-scoped"},
	{`grudges?|pardons?|pardoned`, "failures, forgiven"},
	{`told to (end|go)`, "terminating"},
	{`patience`, "timeout"},
	{`nobody's`, "say whose it is, or that it has no owner"},
}

// TestWords holds that the words of code and pages are the field's. Identifiers are read word by word: newCensus is new and Census.
func TestWords(t *testing.T) {
	found, err := coinedIn(os.DirFS("../.."))
	must(t, err)
	for _, f := range found {
		t.Error(f)
	}
}

func TestWordsAreFound(t *testing.T) {
	found, err := coinedIn(fstest.MapFS{
		"go.mod":       {},
		"pkg/x.go":     {Data: []byte("package x\n\nfunc newCensus() {}\n")},
		"docs/y.md":    {Data: []byte("A tree is felled.\nIt is evicted.\n")},
		"docs/z.md":    {Data: []byte("It fell. The census-taker sees forests.\n")},
		"CHANGELOG.md": {Data: []byte("The census is gone.\n")},
	})
	must(t, err)
	want := "docs/y.md:1: felled: say evict\ndocs/z.md:1: census: say index of pod counts\npkg/x.go:3: Census: say index of pod counts"
	if got := strings.Join(found, "\n"); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

// humps are where the words of an identifier meet.
var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// coinedIn finds the coined words in all code and pages below a root.
func coinedIn(root fs.FS) (found []string, err error) {
	patterns := make([]*regexp.Regexp, len(coined))
	for i, c := range coined {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + c.word + `)\b`)
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") || entry.Name() == "bin"):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go" && path.Ext(name) != ".md", name == "CHANGELOG.md", name == "internal/archtest/words_test.go":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(humps.ReplaceAllString(string(text), "$1 $2"), "\n") {
			for i, p := range patterns {
				if word := p.FindString(line); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %s: say %s", name, n+1, word, coined[i].field))
				}
			}
		}
		return nil
	})
	return found, err
}
