// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newLint() *cobra.Command {
	var out output
	var files []string
	cmd := &cobra.Command{
		Use:   "lint -f MANIFEST",
		Short: "Say what the constraints, annotations and policies of a manifest mean",
		Long: "Say what the constraints, annotations and policies of a manifest mean in this cluster, and what of them has no effect. It ends with status 1 if " +
			"pods of it would wait for something that cannot be read.",
		Example: "  kubectl espalier lint -f web.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if len(files) == 0 {
				return errors.New("give a manifest with -f; - for the standard input")
			}
			namespace, err := c.namespace()
			if err != nil {
				return err
			}
			m, err := readManifests(cmd.InOrStdin(), files, namespace)
			if err != nil {
				return err
			}
			s, configuration, err := c.source(cmd)
			if err != nil {
				return err
			}
			warn(cmd, s.Unread)
			l, err := inspect.LintManifest(cmd.Context(), s, configuration, m)
			if err != nil {
				return err
			}
			names := namesOf(l.Objects, func(o *inspect.Linted) string { return o.Object })
			if err := out.write(cmd.OutOrStdout(), l, names, func(p *printer) { drawLint(p, l) }); err != nil {
				return err
			}
			if n := l.Problems(); n > 0 {
				return fmt.Errorf("%s: %d problems", strings.Join(files, ", "), n)
			}
			return nil
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "the manifest; - for the standard input; may be repeated")
	return cmd
}

// drawLint writes what was found for people.
func drawLint(out *printer, l *inspect.Lint) {
	for i := range l.Objects {
		o := &l.Objects[i]
		where := ""
		if o.Namespace != "" {
			where = " in namespace " + o.Namespace
		}
		fmt.Fprintf(out, "%s%s\n", o.Object, where)
		for _, p := range o.Problems {
			fmt.Fprintf(out, "  %s %s\n", out.mark(bad, "problem:"), p)
		}
		for _, w := range o.Warnings {
			fmt.Fprintf(out, "  %s %s\n", out.mark(odd, "warning:"), w)
		}
		if o.PlacedBy != "" {
			fmt.Fprintf(out, "  placed by: %s\n", o.PlacedBy)
		}
		for n, means := range o.Means {
			fmt.Fprintf(out, "  %d. %s\n", n+1, means)
		}
	}
	if len(l.Ignored) > 0 {
		fmt.Fprintf(out, "ignored: %s\n", strings.Join(l.Ignored, ", "))
	}
}
