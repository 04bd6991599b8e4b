// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks what a scheduler is started with, before kube-scheduler's own code
// takes over: the configuration, the port and the API server.
//
//   - reach.go: the API server answers
//   - emulate.go: the version of Kubernetes that the API server is of
//   - config.go: which configuration runs, and the flags that are laid over it
//   - profile.go: what is wrong, or may be, with the profiles of one
//   - serving.go: the port of /healthz and /metrics
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
// or shipped without one. It waits some seconds for an API server that does not answer yet, and has the
// flags name its version before gates are set, by setGates. Warnings, and the message that it is waiting, are written to out.
func Run(ctx context.Context, flags *pflag.FlagSet, shipped []byte, setGates func() error, out io.Writer) error {
	path, data, err := load(flags, shipped)
	if err != nil {
		return err
	}
	// What is wrong with the configuration is said first, though whether it is depends on gates, and these on the API server.
	unreached := emulate(ctx, flags, data, out)
	if err := setGates(); err != nil {
		return err
	}
	c, warnings, err := configure(flags, path, data)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		fmt.Fprintln(out, "Warning:", warning)
	}
	if err := prepareServing(ctx, flags, c); err != nil {
		return err
	}
	return unreached
}
