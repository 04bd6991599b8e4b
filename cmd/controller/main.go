// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller runs Espalier's controllers. Pods are placed without it; what it
// writes is for people to read.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := newCommand(version).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
