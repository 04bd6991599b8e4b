// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
)

// During a rolling update old pods leave while new ones come. Counting both makes
// a rollout end lopsided, and each one builds on the last: so three of them.
func TestThreeRollingUpdates(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(4, 50, zone("zone-a"))
	s.nodes(3, 50, zone("zone-b"))
	s.nodes(2, 50, zone("zone-c"))
	s.deploy("app", 20, "spread="+zoneLabel)
	s.even(s.settled("app", 20))
	for i := range 3 {
		s.roll("app", fmt.Sprintf("r%d", i+1))
		o := s.settled("app", 20)
		s.counts(o, 0, 7, 7, 6)
		s.even(o)
	}
}
