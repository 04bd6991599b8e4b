// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package syncs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A sync that fails is made again, and does not count.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, synced := time.Now(), 0
		Repeat(ctx, "test", 2*time.Second, "Syncing", func(context.Context) error {
			switch synced++; synced {
			case 2:
				return errors.New("no answer")
			case 4:
				cancel()
			}
			return nil
		})
		if took := time.Since(began); synced != 4 || took != 6*time.Second {
			t.Errorf("it has synced %d times in %s, want 4 in 6s", synced, took)
		}
	})
	if n := testutil.ToFloat64(total.WithLabelValues("test")); n != 3 {
		t.Errorf("%v syncs are counted, want those 3 that ended without an error", n)
	}
}
