// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// ofService is a pod of an owner, whose soft constraint over zones selects the pods of all owners.
func ofService(owner, pod int) *corev1.Pod {
	name := fmt.Sprintf("app%d-%d", owner, pod)
	p := st.MakePod().Namespace("ns").Name(name).UID(name).Label("svc", "x").Label("controller-revision-hash", "1").
		SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("svc", "x").Obj(), nil, nil, nil, nil)
	return plugintest.Pod(p, fmt.Sprintf("apps/v1 StatefulSet app%d app%d-uid", owner, owner))
}

// Many owners under one selector are one workload. They share one tally, however many they are and in whatever turn
// their pods come: one for each would be made anew for nearly every pod.
func TestOwnersUnderOneSelector(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, name := range []string{"a1", "b1", "c1"} {
		r.join(name, "zone="+name[:1])
	}
	f := &filters{rig: r}
	const owners = 3 * maxRevisions
	onNode, built := make(map[string]int), 0
	for pod := range 2 {
		for owner := range owners {
			p := ofService(owner, pod)
			node, _ := f.hint(p, true)
			f.assume(p, node)
			onNode[node]++
			if kept := r.kept(p); kept != nil && kept.rebuilt {
				built++
			}
		}
	}
	for _, name := range []string{"a1", "b1", "c1"} {
		if onNode[name] != 2*owners/3 {
			t.Errorf("%d pods are on %s, want a third of %d", onNode[name], name, 2*owners)
		}
	}
	service := clusterview.Workload{Namespace: "ns", Kind: clusterview.KindSelector, Name: "svc=x"}
	if kept := r.pl.trees.tallies[service].Len(); kept != 1 || built > 1 {
		t.Errorf("the service has %d tallies, and one was made %d times, want one, once", kept, built)
	}
}

// An owner with an older revision sees counts of its own: what is on its way out is no part of them.
func TestRevisionsUnderOneSelector(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a")
	r.join("b1", "zone=b")
	old := ofService(0, 0)
	old.Labels["controller-revision-hash"], old.Spec.NodeName = "0", "a1"
	r.must(r.cache.AddPod(r.logger, old))
	beside := ofService(1, 0)
	beside.Spec.NodeName = "b1"
	r.must(r.cache.AddPod(r.logger, beside))
	if got := r.counted(ofService(0, 1), "a1"); got != [2]int64{0, 1} {
		t.Errorf("where its older revision is, the owner counts %v", got)
	}
	if got := r.counted(ofService(1, 1), "a1"); got != [2]int64{1, 1} {
		t.Errorf("there, another owner counts %v", got)
	}
	if got := r.counted(ofService(0, 1), "b1"); got != [2]int64{1, 1} {
		t.Errorf("where the other owner is, it counts %v", got)
	}
}

// What has failed of one workload says nothing of another under the same selector, in whichever turn their pods come.
func TestFaultsUnderOneSelector(t *testing.T) {
	of := func(workload, name string) *corev1.Pod {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label("svc", "x").Label(clusterview.WorkloadLabel, workload).
			SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("svc", "x").Obj(), nil, nil, nil, nil).Obj()
	}
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a")
	r.join("b1", "zone=b")
	for _, workload := range []string{"bad", "good"} {
		there := of(workload, "first-of-"+workload)
		there.Spec.NodeName = "b1"
		r.must(r.cache.AddPod(r.logger, there))
	}
	faults := newLedger(placement.Faults{Threshold: 2})
	f := &filters{rig: r}
	proposed := func(workload string) string {
		state := framework.NewCycleState()
		clusterview.WriteFaults(state, faults)
		f.feasible()
		node, _, err := f.pl.Hint(f.ctx, state, of(workload, "next-of-"+workload), true, f.fits)
		f.must(err)
		return node
	}
	for turn, want := range []string{"a1", "b1", "b1"} {
		if turn == 1 {
			faults.write(at(r.pl.identifier.Identify(of("bad", "p")), "a1"), placement.Record{Failures: 2})
		}
		if good := proposed("good"); good != "a1" {
			t.Errorf("turn %d: a pod of the workload without failures goes to %s", turn, good)
		}
		if bad := proposed("bad"); bad != want {
			t.Errorf("turn %d: a pod of the workload that fails on a1 goes to %s, want %s", turn, bad, want)
		}
	}
}
