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

// forms are the formats of every command, beside text.
var forms = []string{"json", "yaml", "name", "wide"}

// output is how an answer is written.
type output struct {
	format string
	// formats are those that a command has beside text.
	formats []string
}

// add adds the flag, with formats that the command alone has.
func (o *output) add(cmd *cobra.Command, own ...string) {
	o.formats = slices.Concat(forms, own)
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "text if empty, or one of: "+strings.Join(o.formats, ", "))
	complete(cmd, "output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses a format that there is not.
func (o *output) check() error {
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output=%s: write one of %s, or leave it out", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// write writes an answer as JSON or YAML, or the names of what it is about, or has text written for people.
func (o *output) write(out io.Writer, answer any, names []string, text func(*printer)) error {
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
	case "name":
		for _, name := range names {
			fmt.Fprintln(out, name)
		}
		return nil
	default:
		text(&printer{Writer: out, colours: hasColours(out), wide: o.format == "wide"})
		return nil
	}
}

// namesOf are the names of what an answer is about, each once, in its order.
func namesOf[T any](all []T, name func(*T) string) (names []string) {
	for i := range all {
		if is := name(&all[i]); !slices.Contains(names, is) {
			names = append(names, is)
		}
	}
	return names
}

// listing is the output of a command that lists what is in a namespace, or in all of them.
type listing struct {
	output
	everywhere bool
}

// add adds the flags.
func (l *listing) add(cmd *cobra.Command) {
	l.output.add(cmd)
	cmd.Flags().BoolVarP(&l.everywhere, "all-namespaces", "A", false, "list those of all namespaces")
}

// listed checks the flags, and returns the namespace that is meant, "" for all.
func (c *common) listed(l *listing) (string, error) {
	if err := l.check(); err != nil || l.everywhere {
		return "", err
	}
	return c.namespace()
}

// table is rows in columns, which are written when all of them are known.
type table struct {
	text  strings.Builder
	marks []mark
	// everywhere says that a namespace stands in front of each row.
	everywhere bool
	columns    io.Writer
	flush      func() error
}

func newTable(everywhere bool) *table {
	t := &table{everywhere: everywhere}
	w := printers.GetNewTabWriter(&t.text)
	t.columns, t.flush = w, w.Flush
	return t
}

// row adds one.
func (t *table) row(m mark, namespace string, cells ...string) {
	if t.everywhere {
		cells = append([]string{namespace}, cells...)
	}
	t.marks = append(t.marks, m)
	fmt.Fprintln(t.columns, strings.ReplaceAll(strings.Join(cells, "\t"), "\n", " "))
}

// write writes the rows. Colours come last: the columns are as wide as what is seen.
func (t *table) write(p *printer) {
	_ = t.flush() // into memory
	n := 0
	for line := range strings.Lines(t.text.String()) {
		fmt.Fprintln(p, p.mark(t.marks[n], strings.TrimSuffix(line, "\n")))
		n++
	}
}
