// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"testing"

	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// An annotation comes before a policy, a policy before the profile. One that cannot be
// read refuses the pods that need it.
func TestLimitsOfAPolicy(t *testing.T) {
	r := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 9})
	policy := func(name, app string, limits ...placementv1alpha1.DomainLimit) *clusterview.Policy {
		in := &placementv1alpha1.PlacementPolicy{}
		in.Namespace, in.Name = "ns", name
		in.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
		in.Spec.DomainLimits = limits
		return clusterview.ReadPolicy(in)
	}
	r.pl.Under(policies.Fixed(
		policy("one", "web", placementv1alpha1.DomainLimit{TopologyKey: "rack", MaxPods: 2}),
		policy("silent", "api"),
		policy("bad", "db", placementv1alpha1.DomainLimit{TopologyKey: "node.id", MaxPods: 2}),
	))
	for name, tc := range map[string]struct {
		pod  *st.PodWrapper
		want string
	}{
		"by the policy":           {st.MakePod().Namespace("ns").Label("app", "web"), "rack=2"},
		"by its annotation":       {st.MakePod().Namespace("ns").Label("app", "web").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
		"the policy says nothing": {st.MakePod().Namespace("ns").Label("app", "api"), "rack=9"},
		"of another namespace":    {st.MakePod().Namespace("other").Label("app", "web"), "rack=9"},
		"an unreadable policy":    {st.MakePod().Namespace("ns").Label("app", "db"), ""},
		"but the pod has its own": {st.MakePod().Namespace("ns").Label("app", "db").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
	} {
		got, err := r.pl.Limits(tc.pod.Obj())
		if (err != nil) != (tc.want == "") || limit.Format(got) != tc.want {
			t.Errorf("%s: the limits are %q, %v; want %q", name, limit.Format(got), err, tc.want)
		}
	}
}
