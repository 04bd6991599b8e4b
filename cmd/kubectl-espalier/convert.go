// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/convert"
	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newConvert() *cobra.Command {
	var out output
	var file, from string
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Say in annotations what a compose file or topologySpreadConstraints say",
		Long: "Say in Espalier's annotations what the services of a compose file, or the topologySpreadConstraints of a manifest, say about placement. It needs no " +
			"cluster. What it writes is for the pod template.",
		Example: "  kubectl espalier convert -f docker-compose.yaml\n  kubectl espalier convert --from constraints -f web.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if file == "" {
				return errors.New("give a file with -f; - for the standard input")
			}
			all, err := converted(cmd, file, from)
			if len(all) == 0 {
				return err
			}
			// What can be converted is written, whatever is wrong with the rest.
			names := namesOf(all, func(c *convert.Converted) string { return strings.ToLower(c.Kind) + "/" + c.Name })
			return errors.Join(out.write(cmd.OutOrStdout(), all, names, func(p *printer) { drawConverted(p, all) }), err)
		},
	}
	out.add(cmd)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "the file; - for the standard input")
	cmd.Flags().StringVar(&from, "from", "compose", "what it is: compose, or constraints for a manifest of Kubernetes")
	return cmd
}

func converted(cmd *cobra.Command, file, from string) ([]convert.Converted, error) {
	switch from {
	case "compose":
		text, err := readAll(cmd, file)
		if err != nil {
			return nil, err
		}
		all, err := convert.Compose(text)
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return all, err
	case "constraints":
		m, err := readManifest(cmd.InOrStdin(), file, "default")
		if err != nil {
			return nil, err
		}
		var all []convert.Converted
		var errs []error
		for i := range m.Workloads {
			w := &m.Workloads[i]
			one, err := convert.Constraints(w.Name, w.Kind, inspect.PodOf(w))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", file, w, err))
				continue
			}
			all = append(all, one)
		}
		return all, errors.Join(errs...)
	default:
		return nil, fmt.Errorf("--from=%s: it is compose or constraints", from)
	}
}

func readAll(cmd *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	text, err := os.ReadFile(file)
	return text, plain(err)
}

// drawConverted writes the annotations as they stand in a manifest.
func drawConverted(out *printer, all []convert.Converted) {
	for i := range all {
		c := &all[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "# %s %s\n", c.Kind, c.Name)
		for _, note := range c.Notes {
			fmt.Fprintln(out, out.mark(odd, "# "+note))
		}
		if c.Replicas != nil {
			fmt.Fprintf(out, "# replicas: %d\n", *c.Replicas)
		}
		if len(c.Annotations) > 0 {
			text, err := yaml.Marshal(map[string]any{"annotations": c.Annotations})
			if err != nil {
				text = []byte("# " + err.Error() + "\n") // strings can be written
			}
			fmt.Fprint(out, string(text))
		}
	}
}
