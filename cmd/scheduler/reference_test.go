// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

var update = flag.Bool("update", false, "write the page of the flags anew")

// docs/reference/scheduler.md has all flags: `go test ./cmd/scheduler -run Reference -update` writes it.
func TestReference(t *testing.T) {
	flags := newCommand("v0.0.0").Flags()
	text := "# Flags of espalier-scheduler\n\nAfter reading this page you know every flag of the scheduler. They are those of kube-scheduler. With the chart you set them by " +
		"`scheduler.extraArgs`.\n\n" + commandtest.Reference(flags)
	commandtest.WantPage(t, "../../docs/reference/scheduler.md", text, *update)
}
