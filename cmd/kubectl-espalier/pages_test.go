// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
	"github.com/espalier-scheduler/espalier/internal/pages"
)

// Every `kubectl espalier` in the blocks of the pages is a command that there is, with flags that it has.
func TestCommandsOfPages(t *testing.T) {
	all, err := pages.All(os.DirFS("../.."))
	must(t, err)
	found := 0
	for i := range all {
		for _, block := range all[i].Blocks() {
			for line := range strings.Lines(strings.ReplaceAll(block.Text, "\\\n", " ")) {
				line, _, _ = strings.Cut(line, " #")
				args, is := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "kubectl espalier ")
				if !is || strings.HasSuffix(args, "[flags]") {
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
					t.Errorf("%s: there is no command for %q", all[i].Path, line)
				default:
					err = cmd.ParseFlags(rest)
				}
				if err != nil && !strings.Contains(err.Error(), "help requested") {
					t.Errorf("%s: %q: %v", all[i].Path, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("the pages have %d commands", found)
	}
}

// docs/reference/kubectl-espalier.md has all commands with their flags: `go test ./cmd/kubectl-espalier -run Reference -update` writes it.
func TestReference(t *testing.T) {
	cmd := newCommand("v0.0.0", genericiooptions.IOStreams{})
	var out strings.Builder
	out.WriteString("# Commands of kubectl espalier\n\nAfter reading this page you know every command and flag. [kubectl espalier](../kubectl-espalier.md) shows what the commands print.\n")
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		out.WriteString("\n## " + c.Name() + "\n\n" + text + "\n\n```text\n" + c.UseLine() + "\n")
		if c.Example != "" {
			out.WriteString("\n" + c.Example + "\n")
		}
		out.WriteString("```\n\n" + commandtest.Reference(c.LocalFlags()))
	}
	out.WriteString("\n## Flags of all commands\n\n" + commandtest.Reference(cmd.PersistentFlags()))
	commandtest.WantPage(t, "../../docs/reference/kubectl-espalier.md", out.String(), *update)
}
