// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

// Section is a part of the navigation: what a reader is about to do.
type Section struct {
	Title string  `json:"title"`
	Pages []Entry `json:"pages"`
}

// Entry is a page of a section.
type Entry struct {
	// Page is its path from the root of the repository.
	Page string `json:"page"`
	// Title is what the site calls it.
	Title string `json:"title"`
	// Wants is what a reader wants who opens it, after "you want to".
	Wants string `json:"wants"`
}

// NavigationFile is where the navigation is written down.
const NavigationFile = "docs/navigation.yaml"

// Navigation reads it. An unknown field is an error.
func Navigation(root fs.FS) ([]Section, error) {
	text, err := fs.ReadFile(root, NavigationFile)
	if err != nil {
		return nil, err
	}
	var n struct {
		Sections []Section `json:"sections"`
	}
	if err := yaml.UnmarshalStrict(text, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", NavigationFile, err)
	}
	return n.Sections, nil
}

// Contents is the page with all others, docs/README.md, as the navigation has them.
func Contents(sections []Section) string {
	var out strings.Builder
	out.WriteString("# Documentation\n\nAfter reading this page you know which page answers your question.\n")
	for _, s := range sections {
		fmt.Fprintf(&out, "\n## %s\n\n| you want to | page |\n| --- | --- |\n", s.Title)
		for _, e := range s.Pages {
			to, inside := strings.CutPrefix(e.Page, "docs/")
			if !inside {
				to = "../" + to
			}
			fmt.Fprintf(&out, "| %s | [%s](%s) |\n", e.Wants, e.Title, to)
		}
	}
	return out.String()
}
