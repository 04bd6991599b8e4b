// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheWayThrough holds the table of docs/algorithm.md that follows one pod against the code:
// each function it names is in the package that it names.
func TestTheWayThrough(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithm.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "\n## One pod, from PreFilter to its binding\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("docs/algorithm.md has no such section")
	}
	functions := make(map[[2]string]bool)
	for _, s := range own(t) {
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test {
				functions[[2]string{s.room, f.Name.Name}] = true
			}
		}
	}
	name := regexp.MustCompile("`([^`]+)`")
	steps := 0
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \|.*$`).FindAllString(section, -1) {
		cells := strings.Split(row, " | ")
		room := name.FindStringSubmatch(cells[2])[1]
		for _, m := range name.FindAllStringSubmatch(cells[3], -1) {
			steps++
			if !functions[[2]string{room, m[1]}] {
				t.Errorf("%s has no function %s: %s", room, m[1], row)
			}
		}
	}
	if steps < 15 {
		t.Errorf("the table names %d functions", steps)
	}
}
