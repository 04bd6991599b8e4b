// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// inOne is a pod of a Deployment of many that are spread together.
func inOne(i int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		of(fmt.Sprint("web-", i), fmt.Sprint(i))(p)
		labelled(clusterview.WorkloadLabel, "shop")(p)
	}
}

// A revision that is counted has the pods of its workload be looked at for itself, and not once more for each other revision.
func TestRevisionsOfAWorkloadCostTheirOwnPods(t *testing.T) {
	const revisions, pods = 30, 10
	r := newRacks()
	r.node(inRack("n", "r"))
	for i := range revisions {
		for j := range pods {
			r.pod(onNode(podOf(fmt.Sprint("p", i, "-", j), 1, inOne(i)), "n"))
		}
	}
	ask := func(i int) {
		p := podOf(fmt.Sprint("asks", i), 1, inOne(i), limitedTo(rack+"=100"))
		r.try(t.Context(), p, "n", r.of(t.Context(), p), true)
	}
	for i := range revisions {
		ask(i)
	}
	r.gets = 0
	r.pod(onNode(podOf("p0-0", 1, inOne(0)), "n"))
	if r.gets > 2 {
		t.Errorf("a pod that has changed has its node looked up %d times", r.gets)
	}
	p := podOf("another", 1, inOne(revisions), limitedTo(rack+"=100"))
	r.gets = 0
	r.try(t.Context(), p, "n", r.of(t.Context(), p), true)
	if most := revisions*pods + 10; r.gets > most {
		t.Errorf("for one more revision nodes are looked up %d times, for %d pods", r.gets, revisions*pods)
	}
}

// Pods of one workload that each say something else of their limits do not have all of them be counted for each.
func TestLimitsOfOneWorkloadAreBounded(t *testing.T) {
	r := newRacks()
	for i := range 4 {
		r.node(inRack(fmt.Sprint("n", i), "r"))
	}
	web := of("web-1", "1")
	for i := range 200 {
		p, node := podOf(fmt.Sprint("p", i), 1, web, limitedTo(fmt.Sprint(rack, "=", 1000+i))), fmt.Sprint("n", i%4)
		r.pod(p)
		if reasons, _ := r.try(t.Context(), p, node, r.of(t.Context(), p), false); len(reasons) > 0 {
			t.Fatal(reasons)
		}
		r.pod(onNode(p, node))
	}
	for w, of := range r.counts.of {
		if len(of) > mostQuestions {
			t.Errorf("%s is counted for %d limits", w, len(of))
		}
	}
	waits := true
	r.listing = func() {
		if r.counts.mu.TryLock() {
			waits = false
			r.counts.mu.Unlock()
		}
	}
	p := podOf("p", 1, web, limitedTo(rack+"=200"))
	if reasons, _ := r.try(t.Context(), p, "n0", r.of(t.Context(), p), true); len(reasons) == 0 {
		t.Error("of a rack that has 200 pods one more is admitted, though it may have 200")
	}
	if waits {
		t.Error("others wait while the pods of the workload are listed for one of its bindings")
	}
}

// A revision of which no pod ever came anywhere is forgotten.
func TestWhatWasOnlyTriedIsForgotten(t *testing.T) {
	r := newRacks()
	r.node(inRack("n", "r"))
	for i, tries := range []func(*corev1.Pod){
		func(p *corev1.Pod) { r.try(t.Context(), p, "n", r.of(t.Context(), p), true) },  // without effect
		func(p *corev1.Pod) { r.try(t.Context(), p, "n", r.of(t.Context(), p), false) }, // too large
	} {
		p := podOf(fmt.Sprint("p", i), int64(i)*1_000_000, of(fmt.Sprint("web-", i), fmt.Sprint(i)), limitedTo(rack+"=1"))
		r.pod(p)
		tries(p)
		r.gone(p.UID)
	}
	r.checkNothingIsLeft(t)
}

// A running pod may be given to another workload, by its label. Nothing is left of the one that it was the last of.
func TestNothingIsLeftOfAWorkloadThatPodsHaveLeft(t *testing.T) {
	r := newRacks()
	r.node(inRack("n", "r"))
	p := podOf("p", 1, of("web-1", "1"), limitedTo(rack+"=1"))
	r.pod(p)
	r.try(t.Context(), p, "n", r.of(t.Context(), p), false)
	r.pod(onNode(p, "n"))
	p = onNode(p, "n")
	labelled(clusterview.WorkloadLabel, "shop")(p)
	r.pod(p)
	r.gone(p.UID)
	r.checkNothingIsLeft(t)
}

// Labels that no limit is about may be written by the minute, and nodes come when pods do.
func TestNodesThatChangeNoDomainHaveNothingCountedAnew(t *testing.T) {
	r := newRacks()
	r.node(inRack("n", "r"))
	web := of("web-1", "1")
	r.pod(onNode(podOf("there", 1, web), "n"))
	p := podOf("p", 1, web, limitedTo(rack+"=1"))
	ask := func(when, node string, refused bool, lists int) {
		t.Helper()
		if reasons, _ := r.try(t.Context(), p, node, r.of(t.Context(), p), true); (len(reasons) > 0) != refused || r.lists != lists {
			t.Errorf("%s: %q, after %d lists, want %d", when, reasons, r.lists, lists)
		}
	}
	ask("first", "n", true, 1)
	relabelled := inRack("n", "r")
	relabelled.Labels["example.com/load"] = "0.75"
	r.node(relabelled)
	ask("a label of no limit", "n", true, 1)
	r.node(inRack("new", "r"))
	ask("a node without pods", "new", true, 1)
	r.node(inRack("n", "other"))
	ask("the node has left the rack", "new", false, 2)
	// A pod may be known before its node is.
	r.pod(onNode(podOf("early", 1, web), "late"))
	ask("its node is not known", "new", false, 2)
	r.node(inRack("late", "r"))
	ask("and now it is", "new", true, 2)
	delete(r.view.nodes, "late")
	r.RemoveNode("late")
	ask("and now it is gone, and its pod is not", "new", false, 2)
}
