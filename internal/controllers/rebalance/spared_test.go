// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods that ask to be left where they are stay. Another one goes in their place, of the same node or of another one of the zone that has too many, and
// where none does it is said once.
func TestSparedPodsStay(t *testing.T) {
	one := []string{"a1", "a1", "a1", "a1"}
	for name, tc := range map[string]struct {
		on     []string
		spared []string
		want   string // the pod that goes, "" for none
	}{
		"the first to go":                    {one, []string{"web-3"}, "web-2"},
		"all of the node":                    {one, []string{"web-0", "web-1", "web-2", "web-3"}, ""},
		"the fuller node's, and another has": {[]string{"a1", "a1", "a1", "a2"}, []string{"web-0", "web-1", "web-2"}, "web-3"},
		"all of the zone that has too many":  {[]string{"a1", "a1", "a1", "b"}, []string{"web-0", "web-1", "web-2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options())
			for _, host := range []string{"a1", "a2", "b"} {
				r.node(host, host[:1], time.Hour)
			}
			r.deploy("web", func(_ *appsv1.Deployment, p *corev1.Pod) {
				if slices.Contains(tc.spared, p.Name) {
					p.Annotations["karpenter.sh/do-not-disrupt"] = "true"
				}
			}, tc.on...)
			r.after(0)
			if tc.want != "" {
				r.after(2*time.Minute, tc.want)
				r.wantSaid()
				return
			}
			r.after(2 * time.Minute)
			r.after(again)
			r.wantSaid("Normal MoveWithheld Pod " + tc.spared[len(tc.spared)-1] + " on node a1 is misplaced, and stays: it asks for that by the annotation karpenter.sh/do-not-disrupt: true, ")
		})
	}
}

// A pod that asks for a time since its start goes when that is over, though nothing else changes.
func TestSparedForATime(t *testing.T) {
	r := newUneven(t, options(), func(_ *appsv1.Deployment, p *corev1.Pod) {
		p.Annotations["karpenter.sh/do-not-disrupt"] = "62m"
		p.Status.StartTime = &metav1.Time{Time: p.CreationTimestamp.Time}
	}, 4, "web")
	r.after(time.Minute)
	r.after(time.Minute, "web-3")
}

// A dry run names a pod when it no longer asks to be left where it is.
func TestSparedInADryRun(t *testing.T) {
	o := options()
	o.Mode = DryRun
	r := newUneven(t, o, func(_ *appsv1.Deployment, p *corev1.Pod) {
		p.Annotations["karpenter.sh/do-not-disrupt"] = "62m"
		p.Status.StartTime = &metav1.Time{Time: p.CreationTimestamp.Time}
	}, 4, "web")
	r.after(time.Minute)
	r.wantSaid("MoveWithheld Pod web-3 ")
	r.after(time.Minute)
	r.wantSaid("MovePlanned Pod web-3 ")
}
