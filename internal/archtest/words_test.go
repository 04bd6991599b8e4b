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

// coinedWord is a pattern of words, and the field's words for the same.
type coinedWord struct{ word, field string }

// coined are words that are not the field's, each with the field's word for the same.
// They stood in this code once, and are not to come back.
var coined = []coinedWord{
	{`grove|forest|seedlings?|offshoots?`, "cache, build, clone"},
	{`fell(s|ed)`, "evict"},
	{`census(es)?|lens|doubters?|doubted`, "index of pod counts, values of the levels, invalidate"},
	{`near-?sighted|far-?sighted`, "node-local, cluster-scoped"},
	{`grudges?|pardons?|pardoned`, "failures, forgiven"},
	{`told to (end|go)`, "terminating"},
	{`patience`, "timeout"},
	{`nobody's`, "say whose it is, or that it has no owner"},
}

// TestWords holds that the words of code and pages are the field's. Identifiers are read word by word: newNode is new and Node.
func TestWords(t *testing.T) {
	found, err := coinedIn(os.DirFS("../.."), coined)
	must(t, err)
	for _, f := range found {
		t.Error(f)
	}
}

func TestWordsAreFound(t *testing.T) {
	found, err := coinedIn(fstest.MapFS{
		"go.mod":       {},
		"pkg/x.go":     {Data: []byte("package x\n\nfunc newGadget() {}\n")},
		"docs/y.md":    {Data: []byte("A pod is zapped.\nIt is evicted.\n")},
		"docs/z.md":    {Data: []byte("It zaps. The gadget-maker sees gadgetry.\n")},
		"CHANGELOG.md": {Data: []byte("The gadget is gone.\n")},
	}, []coinedWord{{`gadgets?`, "plugin"}, {`zapped`, "evict"}})
	must(t, err)
	want := "docs/y.md:1: zapped: say evict\ndocs/z.md:1: gadget: say plugin\npkg/x.go:3: Gadget: say plugin"
	if got := strings.Join(found, "\n"); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

// humps are where the words of an identifier meet.
var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// coinedIn finds the coined words in all code and pages below a root.
func coinedIn(root fs.FS, coined []coinedWord) (found []string, err error) {
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
