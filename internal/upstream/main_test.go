// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles how hard the properties are tried, unless flags say otherwise. The
// scheduler's cache and queue want metrics.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "300", "rapid.steps": "40"})
	metrics.Register()
	goleak.VerifyTestMain(m)
}
