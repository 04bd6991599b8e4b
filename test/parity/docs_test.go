// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// A test as a page names it: alone, or after its package as seen from the root; or in a command.
	nameInDocs   = regexp.MustCompile("(?:`(?:([\\w./-]+) )?|-run )(Test[A-Z]\\w*)")
	anyName      = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	vectorName   = regexp.MustCompile(`^TestVector_(\d+)_(\d+)`)
)

// pages are those of evidence, with the least number of tests that each names. The first has the rows of vectors.
var pages = []struct {
	name  string
	names int
}{{"docs/parity.md", 100}, {"docs/parity-nomad.md", 30}, {"docs/parity-treadmill.md", 40}, {"docs/parity-vela.md", 20}, {"docs/scenarios.md", 45}}

// A page of evidence is worth what its evidence is: every test it names must exist, in
// the package it names or in one only, and no vector may be carried without a row.
func TestNamesInTheDocs(t *testing.T) {
	root := os.DirFS("../..")
	packages := testsBelow(t, root)
	for i, page := range pages {
		text, err := fs.ReadFile(root, page.name)
		must(t, err)
		if names := nameInDocs.FindAllString(string(text), -1); len(names) < page.names {
			t.Errorf("%s names %d tests: it has been read wrongly", page.name, len(names))
		}
		for _, problem := range wrongNames(string(text), packages) {
			t.Errorf("%s: %s", page.name, problem)
		}
		if i > 0 {
			continue
		}
		for name := range packages {
			if m := vectorName.FindStringSubmatch(name); len(m) == 3 && !strings.Contains(string(text), "\n| "+m[1]+"."+m[2]+" ") {
				t.Errorf("%s carries a vector that has no row in %s: add one for %s.%s", name, page.name, m[1], m[2])
			}
		}
	}
}

// wrongNames says which names of a page lead to no test, or to more than one.
func wrongNames(text string, packages map[string][]string) []string {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	names := nameInDocs.FindAllStringSubmatch(text, -1)
	if n := len(anyName.FindAllString(text, -1)); n != len(names) {
		complain("%d of %d names are not written as `TestName` or `pkg/path TestName`", n-len(names), n)
	}
	for _, m := range names {
		pkg, name := m[1], m[2]
		switch in := packages[name]; {
		case len(in) == 0:
			complain("%s does not exist: name the test that shows it now", name)
		case pkg == "" && len(in) > 1:
			complain("%s could be that of any of %q: write its package before it", name, in)
		case pkg != "" && !slices.Contains(in, pkg):
			complain("%s is in %q, not in %s", name, in, pkg)
		}
	}
	return problems
}

func TestRegression_NamesThatSeveralPackagesHave(t *testing.T) {
	packages := map[string][]string{"TestOne": {"pkg/a"}, "TestTwo": {"pkg/a", "pkg/b"}}
	for text, problems := range map[string]int{
		"`TestOne`, `pkg/a TestOne`":       0,
		"`pkg/a TestTwo`, `pkg/b TestTwo`": 0,
		"`TestTwo`":                        1,
		"`pkg/b TestOne`":                  1,
		"`TestNone`, `pkg/a TestNone`":     2,
		"TestOne":                          1,
	} {
		if got := wrongNames(text, packages); len(got) != problems {
			t.Errorf("%s: problems %q, want %d", text, got, problems)
		}
	}
}

// testsBelow returns the packages of all tests of the repository by the tests' names, whatever module they are in.
func testsBelow(t *testing.T, root fs.FS) map[string][]string {
	t.Helper()
	packages := make(map[string][]string)
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "_output" || d.Name() == "bin" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			packages[string(m[1])] = append(packages[string(m[1])], path.Dir(file))
		}
		return nil
	})
	must(t, err)
	return packages
}

// Each row of a mechanism of Treadmill says who does it, and shows it or says why not. Each vector that has a row has one.
func TestRowsOfTreadmill(t *testing.T) {
	const name = "docs/parity-treadmill.md"
	text, err := os.ReadFile("../../" + name)
	must(t, err)
	_, tables, _ := strings.Cut(string(text), "\n## ")
	rows, vectors := regexp.MustCompile(`(?m)^\| (.*) \| (.*) \| (.*) \|$`).FindAllStringSubmatch(tables, -1), make(map[string]int)
	for _, row := range rows {
		mechanism, who, evidence := row[1], row[2], row[3]
		for _, v := range regexp.MustCompile(`TV\d+`).FindAllString(mechanism, -1) {
			vectors[v]++
		}
		switch who {
		case "who", "---", "Kubernetes", "no component":
		case "Espalier", "Espalier and Kubernetes":
			if !nameInDocs.MatchString(evidence) {
				t.Errorf("%s: %q is done by %s, and no test shows it", name, mechanism, who)
			}
		default:
			t.Errorf("%s: %q is done by %q: use Espalier, Kubernetes, Espalier and Kubernetes, or no component", name, mechanism, who)
		}
		if evidence == "" {
			t.Errorf("%s: %q has no evidence, and does not say why not", name, mechanism)
		}
	}
	if len(rows) < 20 {
		t.Errorf("%s has %d rows: it has been read wrongly", name, len(rows))
	}
	for i := range 26 {
		v := fmt.Sprint("TV", i+1)
		if vectors[v] != 1 {
			t.Errorf("%s has %d rows of %s", name, vectors[v], v)
		}
	}
}
