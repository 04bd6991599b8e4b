// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// Old pods leave while new ones come. The stock scheduler counts both, and what is left when the old ones are gone is lopsided.
func TestStockRollingUpdates(t *testing.T) {
	s := begin(t, spread, byZone)
	for z, nodes := range []int{4, 3, 2} {
		s.nodes(nodes, 50, zone(fmt.Sprint("zone-", z)))
	}
	stock, ours := s.besideStockAfter("app", 20, func() *rig.Observation {
		for i := range 3 {
			s.roll("app", fmt.Sprintf("r%d", i+1))
		}
		return s.settled("app", 20)
	}, constrained("app", zoneLabel))
	s.counts(ours, 0, 7, 7, 6)
	s.beside(evennessCases[10], byZones(stock), byZones(ours))
}

// A zone is closed while a Deployment grows, and open when it grows again.
func TestStockCordonedZone(t *testing.T) {
	s := begin(t, spread, byZone)
	s.nodes(4, 50, zone("zone-a"))
	s.nodes(2, 50, zone("zone-b"))
	closed := s.nodes(2, 50, zone("zone-c"))
	stock, ours := s.besideStockAfter("app", 6, func() *rig.Observation {
		s.cordon(true, closed...)
		s.scale("app", 18)
		s.settled("app", 18)
		s.cordon(false, closed...)
		s.scale("app", 24)
		return s.settled("app", 24)
	}, constrained("app", zoneLabel))
	s.counts(ours, 0, 8, 8, 8)
	s.beside(evennessCases[11], byZones(stock), byZones(ours))
}

// A node that refuses every pod looks the emptiest, so that the stock scheduler gives it every replacement.
func TestStockBadNode(t *testing.T) {
	s := begin(t, spread)
	long := time.Minute // for which the figure is
	if *evennessFlag == "" && !*wholeFlag {
		long = 10 * time.Second // pod after pod is lost, which holds up other stories
	}
	s.must(startStock(), "starting the stock scheduler")
	_, bad := s.bad("rejected", 20, 10)
	lost := func(scheduler string) int {
		before := s.losses()
		s.deploy("app", 60, "", func(spec *corev1.PodSpec) { spec.SchedulerName = scheduler })
		time.Sleep(long)
		n := before.total()
		s.deleted("app")
		return n
	}
	ours := lost(s.scheduler)
	stock := lost(corev1.DefaultSchedulerName)
	if ours > 6 || stock < ours {
		t.Errorf("on %s %d pods were lost, and %d of the stock scheduler's", bad, ours, stock)
	}
	s.beside(evennessCases[12], fmt.Sprint(stock), fmt.Sprint(ours))
}
