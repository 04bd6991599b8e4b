// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"
)

func TestSilence(t *testing.T) {
	for _, c := range []struct {
		nodes int
		grace time.Duration
		want  time.Duration
		lease int
	}{
		{0, 0, 20 * time.Second, 20},
		{24, 0, 20 * time.Second, 20},
		{100, 0, 20 * time.Second, 20},
		{1000, 0, 200 * time.Second, 200},
		{5000, 0, 1000 * time.Second, 1000},
		{5000, 8 * time.Second, 8 * time.Second, 8},
		{1, 4 * time.Second, 4 * time.Second, 4},
	} {
		grace, lease := silence(c.nodes, c.grace)
		if grace != c.want || lease != c.lease {
			t.Errorf("%d nodes, grace %s: %s and a lease of %d s, want %s and %d", c.nodes, c.grace, grace, lease, c.want, c.lease)
		}
	}
}

func TestDefaultLeasesStayAffordable(t *testing.T) {
	for _, nodes := range []int{1, 24, 500, 5000, 50000} {
		_, lease := silence(nodes, 0)
		if perSecond := float64(nodes) / (float64(lease) / 4); perSecond > renewalsPerSecond {
			t.Errorf("%d nodes renew %.0f leases a second, more than %d", nodes, perSecond, renewalsPerSecond)
		}
	}
}
