// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"os"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500"})
	os.Exit(m.Run())
}
