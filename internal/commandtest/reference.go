// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Reference is a table of flags, as pages have it.
func Reference(flags *pflag.FlagSet) string {
	var out strings.Builder
	out.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		if f.Name == "feature-gates" { // there are hundreds, which are those of Kubernetes
			usage, _, _ = strings.Cut(usage, "Options are:")
			usage = strings.TrimSpace(usage)
		}
		spelling := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			spelling = "`-" + f.Shorthand + "`, " + spelling
		}
		if name != "" {
			spelling += " " + name
		}
		value := f.DefValue
		if value == "[]" {
			value = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		usage = strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;").Replace(usage)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", spelling, value, usage)
	})
	return out.String()
}

// WantPage fails the test unless a page has this text. With update it writes the page.
func WantPage(t testing.TB, path, text string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != text {
		t.Errorf("%s is not of these flags: write it anew with -update", path)
	}
}
