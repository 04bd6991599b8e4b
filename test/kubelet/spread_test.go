// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// A Deployment that the default scheduler has placed, by soft constraints that the
// manifest has had all along, is given to Espalier and nothing else is changed: half of
// its pods are on the one node of the small zone then.
func TestNothingChangedButSchedulerName(t *testing.T) {
	s := begin(t)
	template := s.template("app", func(spec *corev1.PodSpec) {
		spec.SchedulerName = corev1.DefaultSchedulerName
		for _, key := range []string{zoneLabel, corev1.LabelHostname} {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}},
			})
		}
	})
	template.Annotations = nil
	s.create("app", 12, template)
	s.rolled("app")
	s.Logf("the default scheduler:\n%s", s.settled("app", 12).Draw())

	s.Patch("app", `{"spec":{"template":{"spec":{"schedulerName":"`+rig.SchedulerName+`"}}}}`)
	s.rolled("app")
	o := s.settled("app", 12)
	s.zones(o, 6, 6)
	if findings := o.Check(); len(findings) > 0 {
		s.Errorf("not as even as it can be: %v\n%s", findings, o.Draw())
	}
}
