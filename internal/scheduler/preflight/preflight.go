// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks what a scheduler is started with, before kube-scheduler's own code
// takes over: the configuration, the port and the API server.
//
//   - config.go: which configuration runs, and the flags that are laid over it
//   - profile.go: what is wrong, or doubtful, with the profiles of one
//   - serving.go: the port of /healthz and /metrics
//   - reach.go: the API server answers
//
// What is wrong is one error of one line, which names the flag or the field.
package preflight

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// Run checks everything, and has the flags name the configuration to run: the file of --config,
// or shipped without one. It waits some seconds for an API server that does not answer yet.
// Warnings, and the message that it is waiting, are written to out.
func Run(ctx context.Context, flags *pflag.FlagSet, shipped []byte, out io.Writer) error {
	c, warnings, err := configure(flags, shipped)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		fmt.Fprintln(out, "Warning:", warning)
	}
	if err := prepareServing(ctx, flags, c); err != nil {
		return err
	}
	return reach(ctx, out, c)
}
