// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/internal/browser"
	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var must = placementtest.Must

// grid is a tree of zones, racks and nodes.
func grid(zones, racks, nodes int) *inspect.Tree {
	t := &inspect.Tree{Namespace: "shop", Workload: "deployment/web", All: inspect.Branch{Name: "all"}, Misplaced: []inspect.Misplaced{{Level: "zone", Pods: 2}, {Level: "node", Pods: 1}}}
	pods := int32(0)
	for z := range zones {
		zone := inspect.Branch{Level: "zone", Name: fmt.Sprintf("europe-west1-zone-%d", z)}
		for r := range racks {
			rack := inspect.Branch{Level: "rack", Name: fmt.Sprintf("rack <%d> & more", r)}
			for n := range nodes {
				node := inspect.Branch{Level: "node", Name: fmt.Sprintf("gke-pool-1-%d-%d-%d-abcdefgh", z, r, n), Pods: pods % 5, All: pods % 5, Fits: pods%7 != 0}
				pods++
				rack.Pods, rack.All = rack.Pods+node.Pods, rack.All+node.All
				rack.Below = append(rack.Below, node)
			}
			zone.Pods, zone.All = zone.Pods+rack.Pods, zone.All+rack.All
			zone.Below = append(zone.Below, rack)
		}
		t.All.Pods += zone.Pods
		t.All.Below = append(t.All.Below, zone)
	}
	return t
}

// No label leaves its cell, and no two cells overlap but a branch and what is below it, which is in another row.
func TestNothingOverlaps(t *testing.T) {
	for _, size := range [][3]int{{3, 4, 8}, {1, 1, 1}, {2, 1, 50}, {16, 2, 3}} {
		cells, width, height := layout(grid(size[0], size[1], size[2]), false)
		for i := range cells {
			c := &cells[i]
			if c.x < 0 || c.y < 0 || c.x+c.w > width || c.y+c.h > height {
				t.Errorf("%v: %s leaves the picture", size, c.b.Name)
			}
			room := c.w
			if c.node {
				room = c.h
			}
			if n := utf8.RuneCountInString(fit(c.b.Name, room-12)) * letter; n > room-12 {
				t.Errorf("%v: the label of %s takes %d of %d pixels", size, c.b.Name, n, room-12)
			}
			for j := range cells[:i] {
				o := &cells[j]
				if c.x < o.x+o.w && o.x < c.x+c.w && c.y < o.y+o.h && o.y < c.y+c.h {
					t.Errorf("%v: %s and %s overlap", size, c.b.Name, o.b.Name)
				}
			}
		}
	}
}

// Each format is well-formed, whatever names are like, and nothing of it comes from elsewhere.
func TestWellFormed(t *testing.T) {
	tree := grid(3, 4, 8)
	var svg, page, dot bytes.Buffer
	must(t, errors.Join(SVG(&svg, tree, false), HTML(&page, tree, false), DOT(&dot, tree, false)))
	reader := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
	rects := 0
	for {
		token, err := reader.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if start, is := token.(xml.StartElement); is && start.Name.Local == "rect" {
			rects++
		}
	}
	if want := 1 + 3 + 3*4 + 3*4*8; rects != want {
		t.Errorf("there are %d boxes, want %d", rects, want)
	}
	if !strings.Contains(svg.String(), "deployment/web in namespace shop") || !strings.Contains(svg.String(), "3 misplaced") || !strings.Contains(svg.String(), "rack &lt;0&gt; &amp; more") {
		t.Error("it lacks a name")
	}
	for name, text := range map[string]string{"SVG": svg.String(), "HTML": page.String()} {
		if n := strings.Count(text, "http"); n != 1 { // the name of the XML's namespace
			t.Errorf("%s names %d addresses", name, n)
		}
		if !strings.Contains(text, "prefers-color-scheme: dark") {
			t.Errorf("%s cannot be read on dark", name)
		}
	}
	if n := strings.Count(dot.String(), "->"); n != 3+12+96 || !strings.HasPrefix(dot.String(), "digraph") {
		t.Errorf("DOT has %d edges", n)
	}
}

// Many nodes without pods are drawn as one.
func TestFold(t *testing.T) {
	tree := grid(1, 1, 0)
	leaf := &tree.All.Below[0].Below[0]
	for n := range 1000 {
		leaf.Below = append(leaf.Below, inspect.Branch{Level: "node", Name: fmt.Sprint("n", n), All: int32(n / 995), Fits: true})
	}
	if cells, _, _ := layout(tree, true); len(cells) != 3+1000 {
		t.Errorf("in full there are %d cells", len(cells))
	}
	cells, _, _ := layout(tree, false)
	if last := cells[len(cells)-1]; len(cells) != 3+5+1 || last.folded != 995 || last.b.Name != "995 more" {
		t.Errorf("there are %d cells, the last %+v", len(cells), last)
	}
}

// A browser shows a tree of 3 zones, 4 racks and 8 nodes: no label lies on another one, it is not empty, and it is light or dark as one likes.
func TestInABrowser(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	tree := grid(3, 4, 8)
	_, width, height := layout(tree, false)
	var page, svg bytes.Buffer
	must(t, HTML(&page, tree, false))
	must(t, SVG(&svg, tree, false))
	labels, wrong, err := b.Labels(t.Context(), page.Bytes(), width+100, height+100)
	must(t, err)
	if want := 1 + 1 + 3 + 3*4 + 3*4*8; labels != want { // the title, and what there is
		t.Errorf("there are %d labels, want %d", labels, want)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"tree.html": page.Bytes(), "tree.svg": svg.Bytes()} {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, content, 0o600))
		must(t, b.Look(t.Context(), file, width+40, height+40, dir))
	}
}
