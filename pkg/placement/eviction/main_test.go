// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "4000"})
	m.Run()
}
