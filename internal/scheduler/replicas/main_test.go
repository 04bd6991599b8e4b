// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
