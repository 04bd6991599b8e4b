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
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// rapid draws another seed in each run unless it is told one, which placementtest.Settle does.
const (
	rapidPath  = "pgregory.net/rapid"
	settleRoom = "pkg/placement/placementtest"
)

// unsettled are the rooms whose tests draw, and do not import what settles the seed. The tree
// derives one for each property, and imports it all the same.
func unsettled(sources []source) (rooms []string) {
	imports := func(s *source, path string) bool {
		return s.test && slices.ContainsFunc(s.imports, func(i imported) bool { return i.path == path })
	}
	settles := map[string]bool{}
	for i := range sources {
		if imports(&sources[i], settleRoom) {
			settles[sources[i].room] = true
		}
	}
	for i := range sources {
		if s := &sources[i]; imports(s, rapidPath) && !settles[s.room] && !slices.Contains(rooms, s.room) {
			rooms = append(rooms, s.room)
		}
	}
	return rooms
}

// A property that fails at random fails for whoever comes next, and not for who broke it.
func TestPropertiesSettleTheirSeeds(t *testing.T) {
	for _, room := range unsettled(own(t)) {
		t.Errorf("%s: its properties begin with another seed in each run: have a TestMain call placementtest.Settle", room)
	}
	drawn := []source{{room: "pkg/x", test: true, imports: []imported{{path: rapidPath}}}}
	if got := unsettled(drawn); !slices.Equal(got, []string{"pkg/x"}) {
		t.Errorf("of a room that draws without a seed, it finds %v", got)
	}
	if got := unsettled(append(drawn, source{room: "pkg/x", test: true, imports: []imported{{path: settleRoom}}})); len(got) > 0 {
		t.Errorf("of a room with a seed, it finds %v", got)
	}
}

// Workflows run actions by their commits, with the version beside it for people: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	must(t, err)
	uses, pinned := regexp.MustCompile(`(?m)^.*\buses: *(\S+)(.*)$`), regexp.MustCompile(`^[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	actions := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if action := m[1] + m[2]; len(m[1]) > 2 && m[1][:2] != "./" {
				actions++
				if !pinned.MatchString(action) {
					t.Errorf("%s: %s: write OWNER/NAME@COMMIT # vX.Y.Z", file, action)
				}
			}
		}
	}
	if actions < 6 {
		t.Errorf("the workflows use %d actions", actions)
	}
}
