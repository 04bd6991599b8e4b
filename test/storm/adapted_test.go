// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evidence is what is known of a storm at its end.
type evidence struct {
	*running
	server *apiServer
	// values are metrics.
	values map[string]float64
	// announced are the events Scheduled.
	announced []eventsv1.Event
}

// witness gathers it.
func (r *running) witness(t *testing.T, server *apiServer) *evidence {
	t.Helper()
	e := &evidence{running: r, server: server, values: counters(t, counted...)}
	list, err := server.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if event.Reason == "Scheduled" {
			e.announced = append(e.announced, event)
		}
	}
	return e
}

var counted = []string{
	"espalier_hints_total", "espalier_failures_total", "espalier_refused_bindings_total", "espalier_sampled_pods_total", "espalier_handed_back_pods_total",
}

// wrappers are what each wrapper of upstream.Adapt must have done by the end of a storm, at least once, or never. What countAll and seeNamespaces do is
// in the golden file. Without the wrapper it is the other
// way round: which of them is missing can be read off what fails.
var wrappers = []struct {
	name, what string
	never      bool
	count      func(*evidence) float64
}{
	{"confirm", "pods whose binding had no answer were looked for", false, func(e *evidence) float64 { return e.server.looked(true) }},
	{"confirm", "pods whose binding had no answer were not looked for", true, func(e *evidence) float64 { return e.server.looked(false) }},
	{"withhold", "pods were not withheld", false, func(e *evidence) float64 { return float64(e.admitted.Load()) }},
	{"recoverDiscarded", "pods whose binding failed were looked for in the queue", false, func(e *evidence) float64 { return float64(e.sought.Load()) }},
	{"failAsync", "refused pods were written down while the next one was taken up", false, func(e *evidence) float64 { return float64(e.server.beside.Load()) }},
	{"yield", "others ran before a pod was taken up", false, func(e *evidence) float64 { return one(e.yielded) }},
	{"pace", "pods were taken up late because many were being bound", false, func(e *evidence) float64 { return float64(e.held.Load()) }},
	{"rebind", "pods were bound to another node at once", false, metric("espalier_refused_bindings_total{outcome=next,profile=" + shipped + "}")},
	{"announce", "pods got the event Scheduled", false, func(e *evidence) float64 { return e.events(shipped) }},
	{"announce", "pods got the event Scheduled in the profile that announces none", true, func(e *evidence) float64 { return e.events(scored) }},
	{"announce", "events Scheduled name another node than the pod's", true, func(e *evidence) float64 { return e.mistaken() }},
	{"narrow", "looks at some of the waiting pods followed on a binding", false, func(e *evidence) float64 { return float64(e.few.Load()) }},
	{"narrow", "looks at all waiting pods followed on a binding", true, func(e *evidence) float64 { return float64(e.everyone.Load()) }},
	{"track", "changed nodes were known by the journal", false, func(e *evidence) float64 { return float64(e.changed.Load()) }},
	{"wrap", "node hints were used", false, metric("espalier_hints_total{outcome=used,profile=" + shipped + "}")},
	{"wrap", "pods had no node hint because no node fitted", false, metric("espalier_hints_total{outcome=none,profile=" + shipped + "}")},
	{"sample", "pods were decided about by a sample", false, metric("espalier_sampled_pods_total{outcome=sampled,profile=" + sampling + "}")},
	{"sample", "node hints were used beside samples", false, metric("espalier_hints_total{outcome=used,profile=" + sampling + "}")},
	{"share", "pods were handed back", false, metric("espalier_handed_back_pods_total{}")},
}

// undone are the deeds of wrappers that were not done, or were although they must not be.
func (e *evidence) undone() (all []string) {
	for _, w := range wrappers {
		if n := w.count(e); w.never != (n == 0) {
			all = append(all, fmt.Sprintf("upstream.Adapt, %s: of %q there are %v, want %s", w.name, w.what, n, map[bool]string{false: "some", true: "none"}[w.never]))
		}
	}
	return all
}

func metric(key string) func(*evidence) float64 {
	return func(e *evidence) float64 { return e.values[key] }
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// looked counts the pods whose binding had no answer and that were asked about, or were not.
func (t *traffic) looked(asked bool) (n float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.lost {
		n += one(t.asked.Has(name) == asked)
	}
	return n
}

// events counts the pods of a profile that got the event Scheduled.
func (e *evidence) events(profile string) (n float64) {
	for i := range e.announced {
		n += one(e.announced[i].ReportingController == profile)
	}
	return n
}

// mistaken counts the events that name a node where the pod is not.
func (e *evidence) mistaken() (n float64) {
	bound, _ := e.server.bindings()
	for i := range e.announced {
		event := &e.announced[i]
		n += one(!strings.HasSuffix(event.Note, " to "+bound[string(event.Regarding.UID)]))
	}
	return n
}

// batch is so many pods, which are more than are bound at once.
const batch = heldWith + 32

// stall has a batch of pods of all profiles come while the API server answers no binding, until the scheduler waits for it. Of two more, one fits nowhere
// and waits for other pods to be bound, and one has no node hint, so that it is decided about by a sample. The batch is over soon, so that there is room
// for the storm.
func (r *running) stall(t *testing.T, server *apiServer) {
	t.Helper()
	release := server.hold()
	awaiting := podOf("awaiting", "hard", "awaiting", shipped, nil)
	awaiting.Spec.NodeSelector = map[string]string{"disk": "none"}
	come := []*corev1.Pod{awaiting, podOf("preferring", "near", "preferring", sampling, nil)}
	for i := range batch {
		come = append(come, podOf(fmt.Sprint("batch-", i), "plain", "batch", stormy[i%len(stormy)], nil))
	}
	pods := server.CoreV1().Pods(namespace)
	for _, pod := range come {
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	within(calming, func() bool { return r.held.Load() > 0 }) // what is missing is told of at the end
	release()
	within(calming, func() bool { bound, _ := server.bindings(); return len(bound) > batch })
	for _, pod := range come[1:] {
		if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
