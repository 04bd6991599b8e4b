// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// One tenant's failures, however many, take neither memory without end nor the memory
// of others.
func TestOneTenantFillsNothing(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("other/db", "n1", 1)
	for i := range maxPerNamespace + 7 {
		r.clock.Step(time.Millisecond)
		r.reject(fmt.Sprintf("web%d", i), "n1", 1)
	}
	r.look()
	if len(r.tracked) != maxPerNamespace+1 || len(r.ledger.Revisions()) != len(r.tracked) {
		t.Errorf("%d revisions are tracked, and %d known", len(r.tracked), len(r.ledger.Revisions()))
	}
	for workload, want := range map[string]bool{"other/StatefulSet.apps/db": true, "ns/StatefulSet.apps/web6": false, "ns/StatefulSet.apps/web7": true} {
		if got := r.ledger.Knows(failure.Revision{Workload: workload, Revision: "1"}); got != want {
			t.Errorf("%s is known: %t", workload, got)
		}
	}
}

// However late and much one namespace has failed, another that asks for little has its
// room in the record.
func TestOneTenantFillsNoRecord(t *testing.T) {
	r := record{Version: recordVersion}
	for i := range 9 {
		r.Revisions = append(r.Revisions, saved(fmt.Sprintf("big/%d", i), 20, 100, noon.Add(time.Minute)))
	}
	r.Revisions = append(r.Revisions, saved("small/w", 1, 100, noon))
	one, err := sizeOf(&r.Revisions[0])
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.encode(2 * one)
	if err != nil {
		t.Fatal(err)
	}
	if has := decoded(t, text); has["small/w"] != 1 || has["big/0"] != 20 {
		t.Errorf("it has %v", has)
	}
}

// A Deployment that is deleted takes its ReplicaSets along, and nothing is made of them
// any more: they need no patience.
func TestAReplicaSetThatIsGone(t *testing.T) {
	for name, wrap := range map[string]func(*appsv1.ReplicaSet) any{
		"seen":   func(rs *appsv1.ReplicaSet) any { return rs },
		"unseen": func(rs *appsv1.ReplicaSet) any { return cache.DeletedFinalStateUnknown{Obj: rs} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, without(options()))
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid-of-web-1"}}
			sets := r.Informers.Apps().V1().ReplicaSets().Informer().GetIndexer()
			r.must(sets.Add(rs))
			p := st.MakePod().Namespace("ns").Name("a").UID("a").SchedulerName("espalier").Node("n1").
				OwnerReference("web-1", appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
			p.OwnerReferences[0].UID = rs.UID
			running := p.Phase(corev1.PodRunning).Obj()
			r.see(running)
			failed := p.Obj().DeepCopy()
			failed.Name, failed.UID = "b", "b"
			failed.Status.Phase, failed.Status.Reason = corev1.PodFailed, "OutOfcpu"
			failed.Status.StartTime = &metav1.Time{Time: r.clock.Now()}
			r.see(failed)
			r.pass(sweeping)
			r.must(sets.Delete(rs))
			r.onReplicaSetGone(wrap(rs))
			r.pass(5 * sweeping)
			if !r.Known(running) {
				t.Fatal("it is forgotten while a pod of it runs")
			}
			r.leave(running)
			r.pass(3 * sweeping)
			if r.Known(running) {
				t.Error("it is known, though it will never have a pod again")
			}
		})
	}
}

// A scheduler that was not there when a Deployment was deleted knows its failures from the
// record, and that its ReplicaSet is none of those there are.
func TestAReplicaSetThatWasGoneBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		family    string
		regarding corev1.ObjectReference
		known     bool
	}{
		"of a ReplicaSet that is gone":    {"gone", corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}, false},
		"of one that is there":            {"there", corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}, true},
		"of a workload that names itself": {"ns/label/web", corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}, true},
		"of a Job":                        {"gone", corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "web"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options())
			r.must(r.Informers.Apps().V1().ReplicaSets().Informer().GetIndexer().Add(
				&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "there"}}))
			of := failure.Revision{Workload: "ns/Deployment.apps/web", Revision: "1"}
			saved := revisionSaved{tracked: tracked{Family: tc.family, Regarding: tc.regarding}}
			saved.Workload, saved.Revision = of.Workload, of.Revision
			saved.Nodes = []failure.NodeHistory{{Node: "n1", Failures: []failure.Failure{{Pod: "p", Key: "phase", Kind: "OutOfcpu", At: r.clock.Now()}}}}
			r.restore(&record{Version: recordVersion, Revisions: []revisionSaved{saved}})
			if r.tracked[of] == nil {
				t.Fatal("it is not known from the record")
			}
			r.pass(3 * sweeping)
			if known := r.tracked[of] != nil; known != tc.known {
				t.Errorf("known is %t", known)
			}
		})
	}
}
