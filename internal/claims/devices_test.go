// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// manager is one of some claims.
type manager struct {
	fwk.SharedDRAManager
	claims
}

func (m manager) ResourceClaims() fwk.ResourceClaimTracker { return tracker{claims: m.claims} }

type tracker struct {
	fwk.ResourceClaimTracker
	claims
}

// claims are some, by name.
type claims map[string]*resourcev1.ResourceClaim

func (t tracker) Get(_, name string) (*resourcev1.ResourceClaim, error) {
	if claim := t.claims[name]; claim != nil {
		return claim, nil
	}
	return nil, errors.New("there is none")
}

// Only claims that list alternatives have a pod scored: others would be allocated on all nodes for nothing.
func TestAlternatives(t *testing.T) {
	claim := func(alternatives int) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r"}}
		for range alternatives {
			c.Spec.Devices.Requests[0].FirstAvailable = append(c.Spec.Devices.Requests[0].FirstAvailable, resourcev1.DeviceSubRequest{Name: "s"})
		}
		return c
	}
	c := &Claims{devices: manager{claims: claims{"plain": claim(0), "single": claim(1), "either": claim(2)}}}
	for name, tc := range map[string]struct {
		claim  corev1.PodResourceClaim
		status []corev1.PodResourceClaimStatus
		want   bool
	}{
		"plain":          {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("plain")}, nil, false},
		"one":            {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("single")}, nil, false},
		"two":            {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("either")}, nil, true},
		"unknown":        {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("none")}, nil, true},
		"of a template":  {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, []corev1.PodResourceClaimStatus{{Name: "b", ResourceClaimName: new("plain")}, {Name: "c", ResourceClaimName: new("either")}}, true},
		"not made yet":   {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, nil, true},
		"none is needed": {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, []corev1.PodResourceClaimStatus{{Name: "c"}}, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{tc.claim}}, Status: corev1.PodStatus{ResourceClaimStatuses: tc.status}}
		if got := c.hasAlternatives(pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if c.hasAlternatives(&corev1.Pod{}) {
		t.Error("a pod without claims has alternatives")
	}
}
