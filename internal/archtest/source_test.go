// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path before every package of ours.
const module = "github.com/espalier-scheduler/espalier"

// source is one Go file of the root module.
type source struct {
	// path is relative to the root, with slashes; room is the folder it is in.
	path, room string
	// test says that the file is compiled for tests only: a _test.go file, or anything below test/.
	test, generated bool
	lines           int
	imports         []imported
	syntax          *ast.File
}

// imported is one import clause. Packages of ours are named by their room.
type imported struct {
	path string
	// name is the name the file knows the package by, as far as syntax can say.
	name string
}

// violation is one broken rule in one file.
type violation struct {
	rule, file, what, why string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s [%s: %s]", v.file, v.what, v.rule, v.why)
}

// load reads all Go files of the module whose root is given, in order of their
// paths. What the go command ignores, and other modules below, are left out.
func load(root fs.FS) ([]source, error) {
	var sources []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if ignored(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := read(root, name)
		if err != nil {
			return err
		}
		sources = append(sources, src)
		return nil
	})
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.path, b.path) })
	return sources, err
}

func ignored(root fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func read(root fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return source{}, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("cannot parse %s: %w", name, err)
	}
	src := source{
		path: name, room: path.Dir(name), test: strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/"),
		generated: ast.IsGenerated(syntax), lines: strings.Count(string(text), "\n"), syntax: syntax,
	}
	for _, spec := range syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("cannot read an import of %s: %w", name, err)
		}
		known := path.Base(target)
		if spec.Name != nil {
			known = spec.Name.Name
		}
		target = strings.TrimPrefix(target, module+"/")
		src.imports = append(src.imports, imported{path: target, name: known})
	}
	return src, nil
}

// matches reports whether a package falls under a pattern: itself, or with "/..."
// also all below it. The pattern "std" is the standard library, "..." anything.
func matches(pattern, pkg string) bool {
	switch pattern {
	case "...":
		return true
	case "std":
		return isStandard(pkg)
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pkg == pattern
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// rooms are the top folders that hold our packages; what else has no dot in its first element is the standard library.
var rooms = []string{"apis/...", "cmd/...", "internal/...", "manifests/...", "pkg/...", "test/..."}

func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".") && !matchesAny(rooms, pkg)
}
