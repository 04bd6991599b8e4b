// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

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
