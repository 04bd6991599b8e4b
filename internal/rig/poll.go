// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// never is an error with which there is nothing to wait for any more.
type never struct{ error }

func (n never) Unwrap() error { return n.error }

// Never has a Poll end with an error at once.
func Never(err error) error { return never{err} }

// Poll checks at every interval until there is no error. When timeout or the context is at
// its end it says what was waited for and the last error.
func Poll(ctx context.Context, timeout, interval time.Duration, what string, check func() error) error {
	for deadline := time.Now().Add(timeout); ; {
		err := check()
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[never](err); ok {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s: %w", timeout, what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the last was: %w", what, context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}
