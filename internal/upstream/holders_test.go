// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"

	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

func TestCheckTracked(t *testing.T) {
	bare := internalcache.New(t.Context(), nil, false, false)
	tracked, _ := track(bare)
	if err := checkTracked(&Scheduler{Cache: tracked}, bare); err != nil {
		t.Errorf("one whose cache is tracked is refused: %v", err)
	}
	err := checkTracked(&Scheduler{Cache: bare}, bare)
	if err == nil || !strings.Contains(err.Error(), "Scheduler.Cache") {
		t.Errorf("one whose cache is not tracked: %v", err)
	}
}
