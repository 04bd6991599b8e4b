// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What of a pod's placement has no effect is said to its owner in an event, once, and of what has there is none.
func TestIgnoredIsSaid(t *testing.T) {
	const reason = "PlacementIgnored"
	s := begin(t, byZone)
	s.nodes(1, 50, zone("zone-a"))
	s.nodes(1, 50, zone("zone-b"))
	s.deploy("even", 4, "", constrained("even", zoneLabel))
	s.deploy("skewed", 4, "", constrained("skewed", zoneLabel), func(spec *corev1.PodSpec) {
		spec.TopologySpreadConstraints[0].MaxSkew = 5
	})
	s.deploy("below", 4, "spread="+corev1.LabelHostname+",spread="+zoneLabel)
	s.tells(reason, "Deployment", "skewed")
	s.tells(reason, "Deployment", "below")
	for _, app := range []string{"even", "skewed", "below"} {
		s.counts(s.settled(app, 4), 0, 2, 2)
	}
	if n := s.told(reason, "Deployment", "even"); n > 0 {
		t.Errorf("of a Deployment that is placed as it asks there are %d events", n)
	}
	if n := s.told(reason, "Deployment", "skewed"); n != 1 {
		t.Errorf("there are %d events, want one for all pods", n)
	}
}
