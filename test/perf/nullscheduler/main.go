// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command nullscheduler is kube-scheduler with nothing to decide: one node after the
// other, in turn, whatever is on it. All the rest is as in any kube-scheduler:
// queue, cache, assuming, binding, event. What it reaches is the ceiling that the API
// server and the framework set for any scheduler.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics that the others have
	_ "k8s.io/component-base/metrics/prometheus/version"  // the same
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(name, newNull))))
}
