// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command devcluster runs a local Kubernetes control plane to try schedulers on.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/command"
)

func main() {
	// Whoever read our progress may die before us. There is still a cluster to take
	// down then, and a broken pipe must not end us in the middle of it.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(command.Main())
}
