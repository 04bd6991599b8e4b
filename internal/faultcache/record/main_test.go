// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain has the random tests begin with one seed.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	os.Exit(m.Run())
}
