// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads the pages of the documentation, for tests: their blocks, headings and links.
//
//   - pages.go: which pages there are, and their blocks
//   - links.go: what they link to, and what can be linked to in them
//   - navigation.go: how readers find them
package pages

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Page is one of Markdown.
type Page struct {
	// Path is from the root of the repository, with slashes.
	Path string
	Text string
}

// beside are the pages that are not below docs.
var beside = []string{
	"README.md", "CONTRIBUTING.md", "SECURITY.md", "ROADMAP.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "manifests/charts/espalier/README.md",
}

// All reads all pages of the repository whose root is given.
func All(root fs.FS) ([]Page, error) {
	paths := slices.Clone(beside)
	err := fs.WalkDir(root, "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("finding the pages: %w", err)
	}
	all := make([]Page, len(paths))
	for i, name := range paths {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, fmt.Errorf("reading a page: %w", err)
		}
		all[i] = Page{name, string(text)}
	}
	return all, nil
}

// Block is a fenced one.
type Block struct {
	// Lang is what is written behind the fence, "" for nothing.
	Lang string
	Text string
	// Line is that of the fence, from 1.
	Line int
	// Name is what a reader saves it as, if the sentence before says so: "Save this as `web.yaml`".
	Name string
}

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	saved = regexp.MustCompile("[Ss]ave [^`]*as `([^`]+)`")
)

// Blocks are those of a page, in their order. An item of a list may have one: it is indented as the item is.
func (p *Page) Blocks() (all []Block) {
	lines := strings.Split(p.Text, "\n")
	before := ""
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			if strings.TrimSpace(lines[i]) != "" {
				before = lines[i]
			}
			continue
		}
		b := Block{Lang: open[2], Line: i + 1}
		if name := saved.FindStringSubmatch(before); name != nil {
			b.Name = name[1]
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			b.Text += strings.TrimPrefix(lines[i], open[1]) + "\n"
		}
		before = ""
		all = append(all, b)
	}
	return all
}

// prose is a page without what is in its blocks, line by line.
func (p *Page) prose() []string {
	lines := strings.Split(p.Text, "\n")
	inside := false
	for i, line := range lines {
		isFence := fence.MatchString(line) || inside && strings.TrimSpace(line) == "```"
		if isFence {
			inside = !inside
		}
		if inside || isFence {
			lines[i] = ""
		}
	}
	return lines
}
