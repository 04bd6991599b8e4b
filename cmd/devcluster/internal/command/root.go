// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of devcluster.
package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit status: 0, or 1 after one line on
// stderr that says what is wrong.
func Main() int {
	root := newRoot(os.Stdout, os.Stderr)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", oneLine(err))
		return 1
	}
	return 0
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "A local Kubernetes control plane to try schedulers on",
		Long: `devcluster runs etcd, kube-apiserver and the workload controllers in one
process, with nodes that are played by kwok. It needs no root, no fixed port and
no container runtime. It runs no scheduler: that is what it is for trying.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		// Without it cobra takes an unknown command for a call for help, status 0.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newUp(), newFail(), newHeal(), newStopNode(), newStartNode(), newVersion())
	return root
}

// oneLine keeps an error that wraps a multi-line one from filling the screen.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
