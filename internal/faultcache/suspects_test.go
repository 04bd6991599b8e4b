// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Who may make pods in one namespace can make any number of workloads that fail: people
// are told of that, and other pods are kept off by nothing less than what no one tenant
// can bring about.
func TestOneTenantTaintsNothing(t *testing.T) {
	const suspect, tainted = "Warning NodeSuspect of Node/n1", "theirs=:NoSchedule,espalier.dev/suspect=espalier:NoSchedule "
	for name, tc := range map[string]struct {
		failing []string
		before  func(r *rig)
		want    string
	}{
		"of two namespaces":        {[]string{"web", "other/db"}, nil, tainted},
		"of one namespace":         {[]string{"web", "web2"}, nil, "theirs=:NoSchedule "},
		"that succeeds nowhere":    {[]string{"web", "other/fails"}, nil, "theirs=:NoSchedule "},
		"and one beside them":      {[]string{"web", "web2", "other/fails"}, nil, "theirs=:NoSchedule "},
		"of which no pod is there": {[]string{"web", "other/db"}, func(r *rig) { r.leave(podOfWorkload("other/db", "well-of-db", "n3").Obj()) }, "theirs=:NoSchedule "},
	} {
		t.Run(name, func(t *testing.T) {
			r := suspecting(t, Taint{Effect: corev1.TaintEffectNoSchedule, MaxPerHour: 9, MaxNodes: 9})
			for _, workload := range tc.failing {
				r.reject(workload, "n1", 5)
			}
			if tc.before != nil {
				tc.before(r)
			}
			r.pass(3 * time.Second)
			if got := strings.Join(r.events, "\n"); !strings.Contains(got, suspect) {
				t.Errorf("said\n%s\nwithout %q", got, suspect)
			}
			if got := r.taintsOf(); got != tc.want {
				t.Errorf("taints are %q, want %q", got, tc.want)
			}
		})
	}
}

// A taint that is there stays as long as the node is suspect, though the pods that
// spoke for it end.
func TestATaintOutlivesItsWitnesses(t *testing.T) {
	r := suspecting(t, Taint{Effect: corev1.TaintEffectNoSchedule, MaxPerHour: 9, MaxNodes: 9})
	r.reject("web", "n1", 5)
	r.reject("other/db", "n1", 5)
	r.pass(3 * time.Second)
	r.leave(podOfWorkload("other/db", "well-of-db", "n3").Obj())
	r.pass(time.Minute)
	const tainted = "theirs=:NoSchedule,espalier.dev/suspect=espalier:NoSchedule "
	if got := r.taintsOf(); got != tainted {
		t.Errorf("taints are %q, want %q", got, tainted)
	}
}

// However many nodes are suspect, so many are tainted at once, and as the taint is taken
// from one there is room for the next.
func TestSoManyAtOnce(t *testing.T) {
	r := suspecting(t, Taint{Effect: corev1.TaintEffectNoSchedule, MaxPerHour: 9, MaxNodes: 1})
	for _, workload := range []string{"web", "other/db"} {
		r.reject(workload, "n1", 5)
	}
	r.pass(2 * time.Minute)
	for _, workload := range []string{"web2", "other/db2"} {
		r.reject(workload, "n2", 5)
	}
	r.clone()
	r.pass(time.Minute)
	if got, want := r.taintsOf(), "theirs=:NoSchedule,espalier.dev/suspect=espalier:NoSchedule "; got != want {
		t.Errorf("taints are %q, want %q", got, want)
	}
	r.pass(130 * time.Second)
	r.clone()
	r.pass(sweeping)
	r.clone()
	r.pass(sweeping)
	if got, want := r.taintsOf(), "theirs=:NoSchedule espalier.dev/suspect=espalier:NoSchedule"; got != want {
		t.Errorf("when the first is over, taints are %q, want %q", got, want)
	}
}

// A scheduler that takes over leaves a taint where it is as long as the node is suspect by the
// record, though it has not seen who spoke against the node, and says nothing twice.
func TestRegression_TakeoverOfTaints(t *testing.T) {
	const none, tainted = "theirs=:NoSchedule ", "theirs=:NoSchedule,espalier.dev/suspect=espalier:"
	for name, tc := range map[string]struct {
		written bool
		effect  corev1.TaintEffect
		stoodBy time.Duration
		want    string
		patches int
	}{
		"started":             {true, corev1.TaintEffectNoSchedule, 0, tainted + "NoSchedule ", 0},
		"stood by":            {true, corev1.TaintEffectNoSchedule, time.Minute, tainted + "NoSchedule ", 0},
		"with another effect": {true, corev1.TaintEffectPreferNoSchedule, 0, tainted + "PreferNoSchedule ", 1},
		"not suspect":         {false, corev1.TaintEffectNoSchedule, 0, none, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := suspecting(t, Taint{Effect: corev1.TaintEffectNoSchedule, MaxPerHour: 9, MaxNodes: 9})
			r.reject("web", "n1", 5)
			r.reject("other/db", "n1", 5)
			r.pass(3 * time.Second)
			if tc.written {
				r.write()
			}
			o := r.options
			o.Taint.Effect = tc.effect
			next := r.renew(o)
			next.clone()
			if tc.stoodBy > 0 {
				next.readRecord(t.Context())
				next.pass(tc.stoodBy)
			}
			next.client.ClearActions()
			next.activate()
			next.pass(3 * time.Second)
			patches := 0
			for _, a := range next.client.Actions() {
				if a.Matches("patch", "nodes") {
					patches++
				}
			}
			if got := next.taintsOf(); got != tc.want || patches != tc.patches {
				t.Errorf("taints are %q after %d changes, want %q after %d", got, patches, tc.want, tc.patches)
			}
			next.announced()
			next.pass(6 * time.Minute)
			next.clone()
			next.pass(sweeping)
			if got := next.taintsOf(); got != none {
				t.Errorf("when it is over, taints are %q", got)
			}
		})
	}
}

// Before it is known what the scheduler before it knew, a scheduler takes no taint away.
func TestTaintsBeforeTheBeginning(t *testing.T) {
	r := suspecting(t, Taint{Effect: corev1.TaintEffectNoSchedule, MaxPerHour: 9, MaxNodes: 9})
	r.reject("web", "n1", 5)
	r.reject("other/db", "n1", 5)
	r.pass(3 * time.Second)
	r.write()
	next := r.renew(r.options)
	next.begun = false
	next.clone()
	next.Activate(t.Context()) // it is not ready
	next.pass(time.Minute)
	const tainted = "theirs=:NoSchedule,espalier.dev/suspect=espalier:NoSchedule "
	if got := next.taintsOf(); got != tainted {
		t.Errorf("taints are %q, want %q", got, tainted)
	}
	next.observeAll()
	next.write()
	close(next.Cache.ready)
	next.pass(time.Minute)
	if got := next.taintsOf(); got != tainted {
		t.Errorf("when it has begun, taints are %q, want %q", got, tainted)
	}
}
