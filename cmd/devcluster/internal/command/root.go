// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of devcluster.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit status: 0, or after one line on stderr
// that says what is wrong, 1 or the status of the command that was run.
func Main() int {
	root := newRoot(os.Stdout, os.Stderr)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", oneLine(err))
		return status(err)
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

// status is the exit status of a command that up has run, and 1 for any other error.
func status(err error) int {
	if exit, is := errors.AsType[commandError](err); is && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}

// oneLine keeps an error that wraps a multi-line one from filling the screen.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
