// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// Creators is how many objects are in the making at once.
	Creators = 16

	reportEvery = 10 * time.Second
)

// each does something for all numbers below n, Creators at a time, about in their
// order, and says how far it is.
func (w *World) each(ctx context.Context, what string, n int, do func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(Creators)
	reported := time.Now()
	for i := range n {
		if going.Err() != nil {
			break
		}
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			w.say("    %s: %d of %d", what, i, n)
		}
		group.Go(func() error {
			if err := do(going, i); err != nil {
				return fmt.Errorf("%s: number %d of %d: %w", what, i+1, n, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
