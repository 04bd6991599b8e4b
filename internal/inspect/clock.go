// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// slow is the clock at which a snapshot was taken: failures that counted then still count, however old the file is.
type slow struct {
	clock.RealClock

	by time.Duration
}

func (c slow) Now() time.Time                  { return c.RealClock.Now().Add(-c.by) }
func (c slow) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// clockOf shows the time at which a snapshot was taken, and goes on from there.
func clockOf(s *snapshot.Snapshot) clock.Clock { return slow{by: time.Since(s.Taken)} }
