// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// crashLoops has each of some revisions of a namespace fail on nodes, so often on each.
func (r *rig) crashLoops(namespace string, revisions, nodes, failures int) {
	r.Helper()
	now := r.lock()
	defer r.mu.Unlock()
	for i := range revisions {
		of := failure.Revision{Workload: fmt.Sprintf("%s/StatefulSet.apps/w%d", namespace, i), Revision: "1"}
		r.tracked[of] = &tracked{family: of.Workload, failed: now}
		for n := range nodes {
			for k := range failures {
				r.ledger.Fail(of, fmt.Sprintf("ip-10-0-%d.internal", n), failure.Rule{}, failure.Failure{
					Pod: fmt.Sprintf("f1b9c1c4-3a0c-4a3e-9c51-%06d%06d", i, n), Key: fmt.Sprintf("exit/%d", k), Kind: "Error(1)",
					At: now.Add(-time.Duration(failures-k) * time.Millisecond),
				})
			}
		}
	}
}

// One tenant's failures, however many, take neither memory without end nor the memory of others.
func TestOneTenantFillsNothing(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("other/db", "n1", 1)
	for i := range maxPerNamespace + 7 {
		r.clock.Step(time.Millisecond)
		r.reject(fmt.Sprintf("web%d", i), "n1", 1)
	}
	r.tick()
	if len(r.tracked) != maxPerNamespace+1 || len(r.ledger.Revisions()) != len(r.tracked) {
		t.Errorf("%d revisions are tracked, and %d known", len(r.tracked), len(r.ledger.Revisions()))
	}
	for workload, want := range map[string]bool{"other/StatefulSet.apps/db": true, "ns/StatefulSet.apps/web6": false, "ns/StatefulSet.apps/web7": true} {
		if got := r.ledger.Knows(failure.Revision{Workload: workload, Revision: "1"}); got != want {
			t.Errorf("%s is known: %t", workload, got)
		}
	}
}

// Failures are bounded in all, whoever they are of. Those of other namespaces are kept, and the
// newest; and no node is lost as long as less is known of each will do.
func TestFailuresAreBoundedInAll(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions, nodes, failures int
		// kept is how many failures of these remain.
		kept int
	}{
		"many of each node":           {5, 5, 64, 5 * 5 * 5},
		"many nodes":                  {1, 300, 5, 925},
		"many nodes of two":           {2, 120, 5, 925},
		"many revisions":              {240, 1, 5, 925},
		"many of which many are more": {1, 200, 10, 925},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, without(options()))
			r.maxFailures = 1000
			r.reject("small/db", "n1", 5)
			r.clock.Step(time.Second)
			r.crashLoops("big", tc.revisions, tc.nodes, tc.failures)
			if all := r.ledger.Failures(); all <= r.maxFailures {
				t.Fatalf("%d failures are not too many", all)
			}
			r.clock.Step(time.Second)
			r.crashLoops("late", 1, 1, 5)
			r.tick()
			kept := make(map[string]int)
			for _, of := range r.ledger.Revisions() {
				kept[record.Namespace(of)] += r.ledger.FailuresOf(of)
			}
			if want := map[string]int{"small": 5, "big": tc.kept, "late": 5}; !maps.Equal(kept, want) {
				t.Errorf("of the namespaces these failures are kept: %v, want %v", kept, want)
			}
			faulty := 0
			for _, m := range r.ledger.Marks() {
				if record.Namespace(m.Revision) == "big" {
					faulty++
				}
			}
			if want := tc.kept / 5; faulty != want {
				t.Errorf("%d nodes are faulty by what is kept, want %d", faulty, want)
			}
			if got := r.ledger.Failures(); got != tc.kept+10 {
				t.Errorf("%d failures are counted", got)
			}
		})
	}
}

// What failed last is kept, whole revisions and of one that is too much the nodes.
func TestTheNewestFailuresAreKept(t *testing.T) {
	r := newRig(t, without(options()))
	r.maxFailures = 40
	for i := range 9 {
		r.clock.Step(time.Second)
		r.reject("web", fmt.Sprintf("n%d", i+1), 5)
	}
	r.tick()
	for i := range 9 {
		want := 0
		if i >= 2 {
			want = 5
		}
		if got := r.ledger.Record(revisionOf(web("1")), fmt.Sprintf("n%d", i+1)).Failures; got != want {
			t.Errorf("of n%d %d failures are known, want %d", i+1, got, want)
		}
	}
}

// Pods that come and go visit all nodes in time. Where one was, and nothing came of it, is not remembered for ever.
func TestNodesThatPodsHaveVisitedAreBounded(t *testing.T) {
	r := newRig(t, without(options()))
	r.maxEntries = 3
	r.reject("web", "n1", 1)
	for i := range 9 {
		node := fmt.Sprintf("n%d", i+2)
		pod := podOfWorkload("web", "on-"+node, node).Obj()
		r.see(pod)
		if i > 0 {
			r.leave(pod)
		}
	}
	if n := r.ledger.Entries(); n != 10 {
		t.Fatalf("of %d nodes something is known", n)
	}
	r.tick()
	if n := r.ledger.Entries(); n != 2 {
		t.Errorf("of %d nodes something is known, want the one with the failure and the one with a pod", n)
	}
	if got := r.ledger.Record(revisionOf(web("1")), "n2").Unproven; got != 1 {
		t.Errorf("%d pods are unproven where one is", got)
	}
}

// A Deployment that is deleted takes its ReplicaSets along, and nothing is made of them any more: they need no startTimeout.
func TestAReplicaSetThatIsGone(t *testing.T) {
	for name, wrap := range map[string]func(*appsv1.ReplicaSet) any{
		"seen":   func(rs *appsv1.ReplicaSet) any { return rs },
		"unseen": func(rs *appsv1.ReplicaSet) any { return cache.DeletedFinalStateUnknown{Obj: rs} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, without(options()))
			rs, gone := r.seeReplicaSet("uid")
			running := ofReplicaSet(pod("a", "n1").Phase(corev1.PodRunning).Obj(), rs.UID)
			r.see(running)
			r.see(ofReplicaSet(r.rejected(pod("b", "n1")), rs.UID))
			r.pass(sweeping)
			gone()
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
			r.seeReplicaSet("there")
			of := failure.Revision{Workload: "ns/Deployment.apps/web", Revision: "1"}
			saved := record.Revision{Family: tc.family, Regarding: tc.regarding}
			saved.Workload, saved.Revision = of.Workload, of.Revision
			saved.Nodes = []failure.NodeHistory{{Node: "n1", Failures: []failure.Failure{{Pod: "p", Key: "phase", Kind: "OutOfcpu", At: r.clock.Now()}}}}
			r.restore(&record.Record{Revisions: []record.Revision{saved}})
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
