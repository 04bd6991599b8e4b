// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/browser"
)

// A browser shows a tree of 3 zones, 4 racks and 8 nodes: no label lies on another one, it is not empty, and it is light or dark as one likes.
func TestInABrowser(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	tree := grid(3, 4, 8)
	_, width, height := layout(tree, false)
	var page, svg bytes.Buffer
	if err := HTML(&page, tree, false); err != nil {
		t.Fatal(err)
	}
	if err := SVG(&svg, tree, false); err != nil {
		t.Fatal(err)
	}
	labels, wrong, err := b.Labels(t.Context(), page.Bytes(), width+100, height+100)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 1 + 3 + 3*4 + 3*4*8; labels != want { // the title, and what there is
		t.Errorf("there are %d labels, want %d", labels, want)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"tree.html": page.Bytes(), "tree.svg": svg.Bytes()} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.Look(t.Context(), file, width+40, height+40, dir); err != nil {
			t.Error(err)
		}
	}
}
