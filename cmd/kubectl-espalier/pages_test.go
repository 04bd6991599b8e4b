// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// fence is a block of a page, of whatever language.
var fence = regexp.MustCompile("(?s)\n```[a-z]*\n(.*?)\n```\n")

// Every `kubectl espalier` in the blocks of the pages is a command that there is, with flags that it has.
func TestCommandsOfPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(string(block[1]), "\\\n", " ")) {
				line, _, _ = strings.Cut(line, " #")
				args, is := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "kubectl espalier ")
				if !is {
					continue
				}
				args, _, _ = strings.Cut(args, " >")
				args, _, _ = strings.Cut(args, " |")
				found++
				root := newCommand("v0.0.0", genericiooptions.IOStreams{})
				cmd, rest, err := root.Find(strings.Fields(args))
				switch {
				case err != nil:
				case cmd == root && !strings.Contains(args, "--help"):
					t.Errorf("%s: there is no command for %q", page, line)
				default:
					err = cmd.ParseFlags(rest)
				}
				if err != nil && !strings.Contains(err.Error(), "help requested") {
					t.Errorf("%s: %q: %v", page, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("the pages have %d commands", found)
	}
}
