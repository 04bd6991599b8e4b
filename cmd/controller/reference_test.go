// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

var update = flag.Bool("update", false, "write the page of the flags anew")

// docs/reference/controller.md has all flags: `go test ./cmd/controller -run Reference -update` writes it.
func TestReference(t *testing.T) {
	text := "# Flags of espalier-controller\n\nAfter reading this page you know every flag of the controller. With the chart you set them by `controller.extraArgs`.\n\n" +
		commandtest.Reference(newCommand("v0.0.0").Flags())
	commandtest.WantPage(t, "../../docs/reference/controller.md", text, *update)
}
