// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with. Each asks the filters of kube-scheduler hundreds of times.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "50"})
	goleak.VerifyTestMain(m)
}
