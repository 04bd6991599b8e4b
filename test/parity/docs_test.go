// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	nameInDocs   = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	vectorName   = regexp.MustCompile(`^TestVector_(\d+)_(\d+)`)
)

const page = "docs/parity.md"

// A page of evidence is worth what its evidence is: every test it names must exist,
// and no vector may be carried without a row.
func TestNamesInTheDocs(t *testing.T) {
	root := os.DirFS("../..")
	text, err := fs.ReadFile(root, page)
	if err != nil {
		t.Fatal(err)
	}
	exists := testsBelow(t, root)
	names := nameInDocs.FindAllString(string(text), -1)
	if len(names) < 100 {
		t.Errorf("%s names %d tests: it has been read wrongly", page, len(names))
	}
	for _, name := range names {
		if !exists[name] {
			t.Errorf("%s names %s, which does not exist: name the test that shows it now", page, name)
		}
	}
	for name := range exists {
		if m := vectorName.FindStringSubmatch(name); len(m) == 3 && !strings.Contains(string(text), "\n| "+m[1]+"."+m[2]+" ") {
			t.Errorf("%s carries a vector that has no row in %s: add one for %s.%s", name, page, m[1], m[2])
		}
	}
}

// testsBelow returns the names of all tests of the repository, whatever module they are in.
func testsBelow(t *testing.T, root fs.FS) map[string]bool {
	t.Helper()
	exists := make(map[string]bool)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "_output" || d.Name() == "bin" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			exists[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return exists
}
