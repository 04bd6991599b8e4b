// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with, and fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500"})
	goleak.VerifyTestMain(m)
}
