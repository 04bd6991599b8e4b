// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// All profiles know who made way for whom in one of them. In another one nobody takes that place, and nobody turns out the pod that it was made
// for, though others run than then: until something else is wanted.
func TestProfilesShareWhoMadeWay(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 0)
	r.allocation("b", 0)
	r.node("n", 5)
	owned := ownedBy("apps/v1", "ReplicaSet")
	other := r.pod("other", "a", 2, "n")
	r.pod("victim", "a", 2, "n", owned)
	preemptor := r.pod("preemptor", "b", 3, "")
	r.start().wantEvicted(preemptor, "n", "victim")
	r.nominate(preemptor, "n")

	like := r.pod("like", "a", 2, "", owned, func(p *corev1.Pod) { p.Spec.Priority = new(int32(1000)) })
	r.again(other, like, preemptor)
	r.wantEvicted(like, "", "it would not fit if all pods after it went: position 3 of 3")

	placed := preemptor.DeepCopy()
	placed.Spec.NodeName = "n"
	younger, none := r.pod("younger", "a", 2, ""), r.pod("none", "none", 2, "n")
	r.again(like, younger, placed, none)
	r.wantEvicted(like, "", "it would not fit if all pods after it went: position 1 of 3")
	r.again(like, younger, placed, none, r.pod("more", "b", 1, ""))
	r.wantEvicted(like, "n", "preemptor")
}
