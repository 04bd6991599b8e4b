// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Creators is how many objects are in the making at once.
const Creators = 16

// each does something for all numbers below n, Creators at a time, about in their
// order, and shows how far it is.
func (w *World) each(ctx context.Context, what string, n int, do func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(Creators)
	for i := range n {
		if going.Err() != nil {
			break
		}
		w.progress(i, n, what)
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
