// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	goleak.VerifyTestMain(m)
}
