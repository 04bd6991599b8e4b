// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scheduler is kube-scheduler with the plugins of Espalier. It is deployed
// as a second scheduler and chosen by schedulerName in a pod spec.
package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the API client
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the build
)

// version is set by the linker.
var version = "unknown"

func main() {
	collectGarbageSooner()
	if err := cli.RunNoErrOutput(newCommand(version)); err != nil {
		// One line, whatever the libraries below put into theirs.
		fmt.Fprintln(os.Stderr, "Error:", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}
