// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/manifests"
)

func (c *common) newDoctor() *cobra.Command {
	var out output
	lease := "espalier-scheduler"
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the installation",
		Long: "Look for what is wrong with the installation: kinds of another release, no leader, pods that no scheduler looks at, nodes that two schedulers share. It " +
			"ends with status 1 if it finds anything.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if c.file != "" {
				return errors.New("--snapshot: doctor looks at a cluster, and not at a file")
			}
			definitions, err := definitions()
			if err != nil {
				return err
			}
			api, err := c.api()
			if err != nil {
				return err
			}
			cluster, err := c.open(cmd)
			if err != nil {
				return err
			}
			checks := inspect.Checks{API: api, Snapshot: cluster.Snapshot, Definitions: definitions, Lease: lease, Schedulers: cluster.Profiles(), Now: time.Now()}
			findings, err := checks.Run(cmd.Context())
			if err != nil {
				return err
			}
			if err := out.write(cmd.OutOrStdout(), findings, func(w io.Writer) { drawFindings(w, findings) }); err != nil {
				return err
			}
			bad := 0
			for _, f := range findings {
				if !f.OK {
					bad++
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d of %d checks found something", bad, len(findings))
			}
			return nil
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	cmd.Flags().StringVar(&lease, "lease", lease, "name of the scheduler's Lease")
	return cmd
}

// definitions are the CRDs of this release.
func definitions() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests.Files, "crds/placement.*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := manifests.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		// Numbers are read as a client of the API reads them: an integer that became a fraction would differ from itself.
		definition := &unstructured.Unstructured{}
		asJSON, err := yaml.YAMLToJSON(text)
		if err == nil {
			err = definition.UnmarshalJSON(asJSON)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, definition)
	}
	return all, nil
}

// drawFindings writes a line for each check, and what to do below it.
func drawFindings(out io.Writer, findings []inspect.Finding) {
	for _, f := range findings {
		mark := "ok "
		if !f.OK {
			mark = "BAD"
		}
		fmt.Fprintf(out, "%s  %s: %s\n", mark, f.Check, f.Found)
		if f.Fix != "" {
			fmt.Fprintf(out, "     %s\n", f.Fix)
		}
	}
}

func (c *common) newFaults() *cobra.Command {
	var out listing
	cmd := &cobra.Command{
		Use:     "faults",
		Short:   "List the nodes on which workloads keep failing",
		Long:    "List the nodes on which workloads keep failing, by the records that schedulers keep in ConfigMaps. A node that is faulty for a revision comes last for its pods.",
		Example: "  kubectl espalier faults -A",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := c.listed(&out)
			if err != nil {
				return err
			}
			api, err := c.api()
			if err != nil {
				return err
			}
			f, err := inspect.ReadFaults(cmd.Context(), api, namespace)
			if err != nil {
				return err
			}
			return out.write(cmd.OutOrStdout(), f, func(w io.Writer) { drawFaults(w, f, out.everywhere, time.Now()) })
		},
	}
	out.add(cmd)
	return cmd
}

// drawFaults writes a line for each node and revision.
func drawFaults(out io.Writer, f *inspect.Faults, everywhere bool, now time.Time) {
	if len(f.Records) == 0 {
		fmt.Fprintln(out, "No scheduler keeps a record. It does so where its plugin FaultyNode has record.enabled.")
		return
	}
	if len(f.Faults) == 0 {
		fmt.Fprintln(out, "No failures are known.")
		return
	}
	row, flush := newTable(out, everywhere)
	defer flush()
	row("NAMESPACE", "NODE", "WORKLOAD", "REVISION", "STATE", "LAST", "FAILURES")
	for i := range f.Faults {
		one := &f.Faults[i]
		state := ""
		if one.Faulty {
			state = "faulty"
		}
		if one.Suspect {
			state += ",suspect"
		}
		row(one.Namespace, one.Node, one.Workload, one.Revision, strings.TrimPrefix(state, ","), now.Sub(one.Last).Round(time.Second).String()+" ago", one.Kinds())
	}
}
