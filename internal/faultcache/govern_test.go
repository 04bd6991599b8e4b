// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// faultPolicy is a policy of namespace ns for the pods of a tier, made so many seconds ago.
func faultPolicy(tier string, threshold int32, ago time.Duration) *clusterview.Policy {
	return clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-" + tier, CreationTimestamp: metav1.Time{Time: noon.Add(-ago)}},
		Spec: placementv1alpha1.PlacementPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
			Faults:      &placementv1alpha1.Faults{Threshold: &threshold},
		},
	})
}

// Two policies govern pods of one revision, and four of them failed on a node: by the older
// policy the node is faulty.
func twoPolicies(t *testing.T) (r *rig, older, younger *corev1.Pod) {
	t.Helper()
	r = newRig(t, without(options()))
	r.policies = []*clusterview.Policy{faultPolicy("a", 3, time.Hour), faultPolicy("b", 5, time.Minute)}
	older, younger = pod("a", "n2").Label("tier", "a").Obj(), pod("b", "n3").Label("tier", "b").Obj()
	for i := range 4 {
		r.see(r.rejected(pod(fmt.Sprintf("failed-%d", i), "n1").Label("tier", "b")))
	}
	r.see(younger)
	r.see(older)
	return r, older, younger
}

// faulty wants the rule of the revision to have a threshold, whichever pod is looked at.
func (r *rig) faulty(threshold int, looks ...*corev1.Pod) {
	r.Helper()
	for i, p := range looks {
		if got := r.For(p).Rule().Threshold; got != threshold {
			r.Errorf("look %d, at %s: its threshold is %d, want %d", i, p.Name, got, threshold)
		}
		if got := len(r.ledger.Marks()) == 1; got != (threshold <= 4) {
			r.Errorf("look %d, at %s: the node is faulty: %t", i, p.Name, got)
		}
	}
}

// What is faulty does not depend on which pod was looked at last, and to look at one has
// nothing judged again.
func TestTheOldestPolicyGovernsARevision(t *testing.T) {
	r, older, younger := twoPolicies(t)
	without := pod("c", "n4").Obj() // no policy governs it
	looks := []*corev1.Pod{younger, older, without, younger}
	r.faulty(3, looks...)
	history := r.ledger.History()
	for range 3 {
		for _, p := range looks {
			r.see(p)
			r.faulty(3, p)
		}
	}
	if got := r.ledger.History(); got != history {
		t.Errorf("to look at pods has changed the ledger %d times", got-history)
	}
}

// An edit takes effect at the next look at any of the pods.
func TestAPolicyOfARevisionIsEdited(t *testing.T) {
	for name, tc := range map[string]struct {
		edited    []*clusterview.Policy
		threshold int
	}{
		"another threshold":        {[]*clusterview.Policy{faultPolicy("a", 5, time.Hour), faultPolicy("b", 5, time.Minute)}, 5},
		"the older one is gone":    {[]*clusterview.Policy{faultPolicy("b", 6, time.Minute)}, 6},
		"the younger one is gone":  {[]*clusterview.Policy{faultPolicy("a", 2, time.Hour)}, 2},
		"none is left":             {nil, 5},
		"it is made anew, younger": {[]*clusterview.Policy{faultPolicy("b", 6, time.Minute), faultPolicy("a", 3, time.Second)}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			for first := range 2 {
				r, older, younger := twoPolicies(t)
				looks := []*corev1.Pod{older, younger, pod("asking", "").Label("tier", "b").Obj()}
				r.faulty(3, looks...)
				r.policies = tc.edited
				if first == 1 {
					slices.Reverse(looks)
				}
				r.faulty(tc.threshold, looks...)
			}
		})
	}
}

// A policy that is older than the one that governs takes over when one of its own pods is looked
// at, and then for all.
func TestAnOlderPolicyTakesOver(t *testing.T) {
	r, older, younger := twoPolicies(t)
	r.faulty(3, older, younger)
	r.policies = slices.Insert(r.policies, 0, faultPolicy("b", 7, 2*time.Hour))
	r.faulty(7, younger, older, younger)
}
