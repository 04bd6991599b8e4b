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
