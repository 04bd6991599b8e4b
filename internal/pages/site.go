// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"

	"golang.org/x/net/html"
)

// site is what the pages of a site have: what can be linked to, and their links.
type site struct {
	anchors map[string][]string // by the file
	links   map[string][]string
	// loaded are what a page needs to be shown: scripts, pictures, styles.
	loaded map[string][]string
}

// BrokenSite finds the links of a site that lead nowhere in its folder, and what it loads from elsewhere, a sentence each. It returns how many
// pages there are.
func BrokenSite(root fs.FS) (pages int, broken []string, err error) {
	s := site{make(map[string][]string), make(map[string][]string), make(map[string][]string)}
	err = fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		doc, err := html.Parse(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.anchors[name] = nil
		for n := range doc.Descendants() {
			s.add(name, n)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	for name, all := range s.loaded {
		for _, to := range all {
			if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" {
				broken = append(broken, fmt.Sprintf("%s loads %s from elsewhere", name, to))
			}
		}
		s.links[name] = append(s.links[name], all...)
	}
	for name, all := range s.links {
		for _, to := range all {
			u, err := url.Parse(to)
			if err != nil || u.IsAbs() {
				continue
			}
			file := name
			if u.Path != "" {
				file = path.Join(path.Dir(name), u.Path)
			}
			switch _, err := fs.Stat(root, file); {
			case err != nil:
				broken = append(broken, fmt.Sprintf("%s: %s: there is no %s", name, to, file))
			case u.Fragment != "" && !slices.Contains(s.anchors[file], u.Fragment):
				broken = append(broken, fmt.Sprintf("%s: %s has no #%s", name, file, u.Fragment))
			}
		}
	}
	slices.Sort(broken)
	return len(s.anchors), broken, nil
}

// add notes what an element of a page is.
func (s *site) add(name string, n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "id", a.Key == "name" && n.Data == "a":
			s.anchors[name] = append(s.anchors[name], a.Val)
		case a.Key == "href" && n.Data == "a":
			s.links[name] = append(s.links[name], a.Val)
		case a.Key == "href" && n.Data == "link", a.Key == "src":
			s.loaded[name] = append(s.loaded[name], a.Val)
		}
	}
}
