// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofSet is a pod of a ReplicaSet of a Deployment's revision.
func ofSet(deployment, hash string, change func(*corev1.Pod)) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: deployment + "-" + hash + "-x", Labels: map[string]string{"app": deployment, "pod-template-hash": hash},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-" + hash, Controller: &controller}},
	}}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestOwnershipKey(t *testing.T) {
	softly := func(selector *metav1.LabelSelector, keys ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hard": "yes"}}},
				{TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector, MatchLabelKeys: keys},
			}
		}
	}
	tier := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	hashed := func(hash string) *metav1.LabelSelector {
		s := tier.DeepCopy()
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpIn, Values: []string{hash}}}
		return s
	}
	of := func(kind, name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "apps/v1", kind, name
			delete(pod.Labels, "pod-template-hash")
		}
	}
	for name, tc := range map[string]struct {
		a, b *corev1.Pod
		same bool
		want string // of a
	}{
		"revisions of one Deployment": {ofSet("web", "6c8d", nil), ofSet("web", "77f9", nil), true, "shop/ReplicaSet.apps/web"},
		"two Deployments":             {ofSet("web", "6c8d", nil), ofSet("api", "6c8d", nil), false, "shop/ReplicaSet.apps/web"},
		"a ReplicaSet by itself": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }), ofSet("web", "6c8d", nil), false, "shop/ReplicaSet.apps/web-6c8d",
		},
		"a name that does not end with the hash": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "0000" }), ofSet("web", "6c8d", nil), false, "shop/ReplicaSet.apps/web-6c8d",
		},
		"one selector over two Deployments": {ofSet("web", "6c8d", softly(tier)), ofSet("api", "77f9", softly(tier)), true, "shop/selector/tier=front"},
		"a selector that has the revision": {
			ofSet("web", "6c8d", softly(hashed("6c8d"), "pod-template-hash")), ofSet("web", "77f9", softly(hashed("77f9"), "pod-template-hash")), true, "shop/selector/tier=front",
		},
		"a selector that selects nothing, and none": {ofSet("web", "6c8d", softly(nil)), ofSet("web", "6c8d", nil), true, "shop/ReplicaSet.apps/web"},
		"a selector that cannot be read": {
			ofSet("web", "6c8d", softly(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}})), ofSet("web", "6c8d", nil), true, "shop/ReplicaSet.apps/web",
		},
		"a workload that is named": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { p.Labels[WorkloadLabel] = "all" }), ofSet("api", "77f9", func(p *corev1.Pod) { p.Labels[WorkloadLabel] = "all"; softly(tier)(p) }), true, "shop/label/all",
		},
		"a StatefulSet": {ofSet("web", "x", of("StatefulSet", "db")), ofSet("api", "x", of("StatefulSet", "db")), true, "shop/StatefulSet.apps/db"},
		"pods alone": {
			ofSet("web", "x", func(p *corev1.Pod) { p.OwnerReferences = nil }), ofSet("api", "x", func(p *corev1.Pod) { p.OwnerReferences = nil }), false, "shop/pod/web-x-x",
		},
		"other namespaces": {ofSet("web", "6c8d", nil), ofSet("web", "6c8d", func(p *corev1.Pod) { p.Namespace = "test" }), false, "shop/ReplicaSet.apps/web"},
	} {
		a, b := OwnershipKey(tc.a), OwnershipKey(tc.b)
		if a != tc.want || (a == b) != tc.same {
			t.Errorf("%s: the keys are %q and %q, want %q and the same: %t", name, a, b, tc.want, tc.same)
		}
	}
}

func TestChanges(t *testing.T) {
	var c Changes
	if got, now, known := c.Since(0); len(got) > 0 || now != 0 || !known {
		t.Errorf("of nothing there is %v at %d, known: %t", got, now, known)
	}
	c.Note("a")
	before := c.Now()
	c.Note("b")
	c.Note("a")
	c.Note("b")
	got, now, known := c.Since(before)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) || now != 4 || !known {
		t.Errorf("since the first there is %v at %d, known: %t", got, now, known)
	}
	if got, _, _ := c.Since(3); !slices.Equal(got, []string{"b"}) {
		t.Errorf("since the third there is %v", got)
	}
	for i := range maxChanged {
		c.Note(strconv.Itoa(i))
	}
	if _, _, known := c.Since(now); known {
		t.Error("what was forgotten is known")
	}
	if got, _, known := c.Since(c.Now() - 1); len(got) != 1 || !known {
		t.Errorf("of the last there is %v, known: %t", got, known)
	}
}
