// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
	named   = regexp.MustCompile(`<[a-z]+ (?:id|name)="([^"]+)"`)
	link    = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: "[^"]*")?\)`)
	code    = regexp.MustCompile("`[^`]*`")
	text    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Anchors are what can be linked to in a page, as GitHub and the site name them.
func (p *Page) Anchors() map[string]bool {
	all := make(map[string]bool)
	for _, line := range p.prose() {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			all[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := anchor(m[1])
		for n := 1; all[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor(m[1]), n)
		}
		all[name] = true
	}
	return all
}

// anchor is the name of a heading: its letters and digits, in lower case, with hyphens for spaces.
func anchor(title string) string {
	title = text.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ', r == '-':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, title)
}

// Link is one of a page.
type Link struct {
	Line int
	To   string
}

// Links are those of a page, pictures too.
func (p *Page) Links() (all []Link) {
	for i, line := range p.prose() {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			all = append(all, Link{i + 1, m[1]})
		}
	}
	return all
}

// IsExternal reports whether a link leaves the repository.
func (l Link) IsExternal() bool {
	return strings.Contains(l.To, "://") || strings.HasPrefix(l.To, "mailto:")
}

// Target is the file that a link of a page leads to, and the anchor in it, "" for none.
func (p *Page) Target(l Link) (file, anchor string) {
	to, anchor, _ := strings.Cut(l.To, "#")
	if to == "" {
		return p.Path, anchor
	}
	return path.Join(path.Dir(p.Path), to), anchor
}

// Broken are the links of pages that lead nowhere in the repository whose root is given, a sentence each.
func Broken(root fs.FS, all []Page) (broken []string) {
	anchors := make(map[string]map[string]bool)
	for i := range all {
		anchors[all[i].Path] = all[i].Anchors()
	}
	for i := range all {
		p := &all[i]
		for _, l := range p.Links() {
			if l.IsExternal() {
				continue
			}
			file, anchor := p.Target(l)
			switch _, err := fs.Stat(root, file); {
			case err != nil:
				broken = append(broken, fmt.Sprintf("%s:%d: there is no %s", p.Path, l.Line, file))
			case anchor != "" && !anchors[file][anchor]:
				broken = append(broken, fmt.Sprintf("%s:%d: %s has no heading #%s", p.Path, l.Line, file, anchor))
			}
		}
	}
	return broken
}
