// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv(Env, "")
	if _, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("without a browser the error is %v", err)
	}
	t.Setenv(Env, filepath.Join(dir, "none"))
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), Env) {
		t.Errorf("a browser that is not there: %v", err)
	}
	path := filepath.Join(dir, "chromium")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv(Env, "")
	if b, err := Find(); err != nil || string(b) != path {
		t.Errorf("found %s, %v", b, err)
	}
}

// The script finds labels that lie on each other, and those that leave the picture.
func TestLabels(t *testing.T) {
	b, err := Find()
	if err != nil {
		t.Skip(err)
	}
	page := `<!DOCTYPE html><body><svg width="300" height="100">
		<text x="10" y="20">alone</text><text x="10" y="50">under</text><text x="14" y="52">over</text><text x="290" y="80">outside</text><text> </text></svg>`
	labels, wrong, err := b.Labels(t.Context(), []byte(page), 400, 200)
	placementtest.Must(t, err)
	if got := strings.Join(wrong, "; "); labels != 4 || got != "over lies on under; outside leaves the picture" {
		t.Errorf("of %d labels it is said: %s", labels, got)
	}
}

// A page is seen as it is preferred, light or dark. One that is dark for nobody is refused, and an empty one.
func TestLook(t *testing.T) {
	b, err := Find()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Setenv(PicturesEnv, "")
	const dark, drawn = `<style>@media (prefers-color-scheme: dark) { body { background: #111 } }</style>`, `<div style="width: 99px; height: 40px; background: linear-gradient(to right, red, blue)"></div>`
	for name, text := range map[string]string{"": dark + drawn, "brightness of 0.9": drawn, "has 1 colours": dark} {
		page := filepath.Join(dir, "page.html")
		placementtest.Must(t, os.WriteFile(page, []byte("<!DOCTYPE html><body>"+text), 0o600))
		if err := b.Look(t.Context(), page, 300, 200, dir); (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", text, err, name)
		}
	}
}
