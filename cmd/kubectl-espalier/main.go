// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-espalier shows how workloads are spread, why, and where pods would go. It is a plugin of kubectl: with it in the PATH,
// kubectl espalier runs it. It reads the API only.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// version is set by the linker.
var version = "unknown"

func main() {
	klog.SetOutput(io.Discard) // the scheduler's own remarks are no answer
	klog.LogToStderr(false)
	ctrllog.SetLogger(logr.Discard())
	// What is read stays, and to look through it again and again took a third of the time. So there may be much garbage as long as all of it
	// is below what a large cluster needs: 5,000 nodes and 50,000 pods are 0.5 GiB.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(850 << 20)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(version, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", line(err))
		os.Exit(1)
	}
}
