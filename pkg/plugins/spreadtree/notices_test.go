// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// said takes the events that there are.
func (r *rig) said() []string {
	var all []string
	for {
		select {
		case e := <-r.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// What has no effect is said once for an owner, by the fast path and by the other.
func TestNotices(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a", "rack=1")
	r.join("a2", "zone=a", "rack=2")
	r.join("b1", "zone=b", "rack=3")
	place := func(p *st.PodWrapper) []string {
		(&filters{rig: r}).hint(p.Obj(), true)
		r.rank(p.Obj(), framework.NewCycleState())
		return r.said()
	}
	constrained := func(name string, maxSkew int) *st.PodWrapper {
		return webPod(name, "").SpreadConstraint(maxSkew, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("pod-template-hash", "2").Obj(), nil, nil, nil, nil)
	}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want string // a part of the one event, "" for none
	}{
		{"nothing asked", webPod("nothing", ""), ""},
		{"all is honoured", webPod("all", "spread=zone"), ""},
		{"a level that no node has", webPod("none", "spread=zon"), `Warning PlacementIgnored The level over "zon" decides nothing: no node has this label.`},
		{"a level below a finer one", webPod("below", "spread=rack;nodesWithoutKey=Exclude,spread=zone"), `The level over "zone" decides nothing below the level over "rack", which is finer: name "zone" first.`},
		{"constraints", constrained("skewed", 3), `The constraint over "zone" has maxSkew 3`},
		{"constraints that are honoured", constrained("even", 1), ""},
		{"a constraint about other pods alone", webPod("others", "").SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("app", "other").Obj(), nil, nil, nil, nil), "does not select the pod itself"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := place(tc.pod)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("events are %q, want %q", got, tc.want)
			}
			if again := place(tc.pod); len(again) > 0 {
				t.Errorf("they are given again: %q", again)
			}
		})
	}
}

// Owners that share a tally have what is theirs said to them each, and a node that comes may change what that is.
func TestNoticesOfOwnersUnderOneSelector(t *testing.T) {
	r := zones(t)
	f := &filters{rig: r}
	place := func(owner, maxSkew int) []string {
		p := ofService(owner, maxSkew)
		p.Spec.TopologySpreadConstraints[0].MaxSkew = int32(maxSkew)
		node, _ := f.hint(p, true)
		f.assume(p, node)
		return r.said()
	}
	for owner, maxSkew := range []int{1, 1, 5, 1, 6} {
		if said := place(owner, maxSkew); (len(said) == 1) != (maxSkew > 1) || len(said) > 1 {
			t.Errorf("owner %d with maxSkew %d has the events %q", owner, maxSkew, said)
		}
	}
	place2 := func(name string) []string {
		f.hint(webPod(name, "spread=rack;nodesWithoutKey=Exclude,spread=zone").Obj(), true)
		return r.said()
	}
	if said := place2("p"); len(said) != 1 || !strings.Contains(said[0], "no node has this label") {
		t.Errorf("without racks it is said %q", said)
	}
	for i, zone := range []string{"a", "a", "b"} {
		r.join(fmt.Sprint("racked", i), "zone="+zone, fmt.Sprint("rack=", i))
	}
	r.pl.misplaced() // a scrape sees the new nodes first
	if said := place2("p"); len(said) != 1 || !strings.Contains(said[0], "below the level") {
		t.Errorf("with racks it is said %q", said)
	}
}

// An event has room for so much, whatever a pod says.
func TestLongNotices(t *testing.T) {
	r := zones(t)
	var levels []string
	for i := range 16 {
		levels = append(levels, fmt.Sprintf("spread=%s-%d", strings.Repeat("x", 60), i))
	}
	(&filters{rig: r}).hint(webPod("p", strings.Join(levels, ",")).Obj(), true)
	got := r.said()
	if len(got) != 1 || len(got[0]) > len("Warning "+reasonIgnored+" ")+1024 || !strings.HasSuffix(got[0], "…") {
		t.Errorf("events are %q", got)
	}
}
