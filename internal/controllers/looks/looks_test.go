// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A look that ends with an error is made again, and does not count.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, looked := time.Now(), 0
		Repeat(ctx, "test", 2*time.Second, "Looking", func(context.Context) error {
			switch looked++; looked {
			case 2:
				return errors.New("no answer")
			case 4:
				cancel()
			}
			return nil
		})
		if took := time.Since(began); looked != 4 || took != 6*time.Second {
			t.Errorf("it has looked %d times in %s, want 4 in 6s", looked, took)
		}
	})
	if n := testutil.ToFloat64(total.WithLabelValues("test")); n != 3 {
		t.Errorf("%v looks are counted, want those 3 that ended without an error", n)
	}
}
