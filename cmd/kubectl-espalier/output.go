// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// output is how an answer is written.
type output struct {
	format string
	// formats are those that a command has beside text, json and yaml.
	formats []string
}

// add adds the flag.
func (o *output) add(cmd *cobra.Command, formats ...string) {
	o.formats = append([]string{"json", "yaml"}, formats...)
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "text if empty, or one of: "+strings.Join(o.formats, ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// check refuses a format that there is not.
func (o *output) check() error {
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output=%s: write one of %s, or leave it out", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// write writes an answer as JSON or YAML, or has text written.
func (o *output) write(out io.Writer, answer any, text func(io.Writer)) error {
	switch o.format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	case "yaml":
		encoded, err := yaml.Marshal(answer)
		if err != nil {
			return err
		}
		_, err = out.Write(encoded)
		return err
	default:
		text(out)
		return nil
	}
}

// listing is the output of a command that lists what is in a namespace, or in all of them.
type listing struct {
	output
	everywhere bool
}

// add adds the flags.
func (l *listing) add(cmd *cobra.Command, formats ...string) {
	l.output.add(cmd, formats...)
	cmd.Flags().BoolVarP(&l.everywhere, "all-namespaces", "A", false, "list those of all namespaces")
}

// listed checks the flags, and returns the namespace that is meant, "" for all.
func (c *common) listed(l *listing) (string, error) {
	if err := l.check(); err != nil || l.everywhere {
		return "", err
	}
	return c.namespace()
}

// newTable returns what writes a row of a table, with a namespace in front if rows of several are listed, and what writes it all at the end.
func newTable(out io.Writer, everywhere bool) (row func(namespace string, cells ...string), flush func()) {
	table := printers.GetNewTabWriter(out)
	return func(namespace string, cells ...string) {
		if everywhere {
			cells = append([]string{namespace}, cells...)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}, func() { _ = table.Flush() }
}
