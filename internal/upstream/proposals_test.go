// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each change that Adapt makes is described in the page of what belongs upstream, by its file.
func TestAdaptIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/decisions/upstream-proposals.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	where, called := map[string]string{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv != nil {
				continue
			}
			where[f.Name.Name] = name
			if f.Name.Name != "Adapt" {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, is := n.(*ast.CallExpr); is {
					if callee, is := call.Fun.(*ast.Ident); is {
						called[callee.Name] = true
					}
				}
				return true
			})
		}
	}
	described := 0
	for callee := range called {
		file, ours := where[callee]
		if !ours { // of the language
			continue
		}
		described++
		if !strings.Contains(string(page), "`"+file+"`") {
			t.Errorf("Adapt calls %s, and the page does not name %s", callee, file)
		}
	}
	if described < 15 {
		t.Errorf("Adapt calls %d functions of this package, want 15 at least", described)
	}
}
