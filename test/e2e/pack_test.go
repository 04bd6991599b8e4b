// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// Packed over racks of six places each, eight pods fill one rack and begin
// another; inside a rack they are spread over its hosts.
func TestPackOverRacksSpreadOverHosts(t *testing.T) {
	s := begin(t, evenness.Level{Name: rackLabel, Pack: true})
	for _, rack := range []string{"rack-1", "rack-2", "rack-3"} {
		s.nodes(3, 2, place("zone-a", "", rack))
	}
	s.deploy("app", 4, "pack="+rackLabel)
	o := s.settled("app", 4)
	s.counts(o, 0, 4, 0, 0)
	s.even(o)

	s.scale("app", 8)
	o = s.settled("app", 8)
	s.counts(o, 0, 6, 2, 0)
	s.even(o)
}
