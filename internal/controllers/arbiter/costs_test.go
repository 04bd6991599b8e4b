// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Nothing is kept of revisions whose pods are gone, whatever had become of them.
func TestRevisionsOfThePastAreForgotten(t *testing.T) {
	try := func(r *racks, p *corev1.Pod, dryRun bool) {
		t.Helper()
		if reasons, _ := r.try(t.Context(), p, "n", r.of(t.Context(), p), dryRun); len(reasons) > 0 {
			t.Fatal(reasons)
		}
	}
	for name, becomes := range map[string]func(*racks, *corev1.Pod){
		"it ran":                    func(r *racks, p *corev1.Pod) { try(r, p, false); r.pod(onNode(p, "n")) },
		"it was tried to no effect": func(r *racks, p *corev1.Pod) { try(r, p, true) },
		"it was too large for a node": func(r *racks, p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000")
			r.try(t.Context(), p, "n", r.of(t.Context(), p), false)
		},
		"its label names another workload": func(r *racks, p *corev1.Pod) {
			try(r, p, false)
			r.pod(onNode(p, "n"))
			p = onNode(p, "n")
			labelled(clusterview.WorkloadLabel, "shop")(p)
			r.pod(p)
		},
	} {
		r := newRacks()
		r.node(inRack("n", "r"))
		for i := range 10 {
			p := podOf(fmt.Sprint("p", i), 1, of(fmt.Sprint("web-", i), fmt.Sprint(i)), limitedTo(rack+"=1"))
			r.pod(p)
			becomes(r, p)
			r.gone(p.UID)
		}
		if len(r.counts.of) > 0 || len(r.counts.pods) > 0 {
			t.Errorf("%s: %d workloads and %d pods are left", name, len(r.counts.of), len(r.counts.pods))
		}
	}
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

// shared is a view that many use at once, as an informer's cache. It knows what has changed before anybody is told.
type shared struct {
	mu sync.Mutex
	view
}

func (s *shared) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Get(ctx, key, o, opts...)
}

func (s *shared) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.List(ctx, list, opts...)
}

func (s *shared) change(do func(*view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.view)
}

// Bindings are asked about while pods and nodes come, change and go, and what has not come expires. When all is quiet, what is counted is what is there.
func TestCountsWhileAllHappensAtOnce(t *testing.T) {
	r := newRacks()
	s := &shared{view: r.view}
	r.Limits.Cache = s
	pod := func(random *rand.Rand) *corev1.Pod {
		return podOf(fmt.Sprint("p", random.IntN(12)), 1, some[random.IntN(len(some))], limitedTo(rack+"=3"))
	}
	node := func(random *rand.Rand) *corev1.Node {
		return inRack(fmt.Sprint("n", random.IntN(5)), fmt.Sprint(random.IntN(2)))
	}
	var running sync.WaitGroup
	for i, do := range []func(*rand.Rand){
		func(random *rand.Rand) { // the watch of pods
			p := pod(random)
			switch random.IntN(5) {
			case 0:
				s.change(func(v *view) { delete(v.pods, p.UID) })
				r.RemovePod(p.UID)
				return
			case 1, 2:
				p = onNode(p, node(random).Name)
			case 3:
				ended(p)
			}
			s.change(func(v *view) { v.pods[p.UID] = p })
			r.SetPod(p)
		},
		func(random *rand.Rand) { // that of nodes
			n := node(random)
			if random.IntN(4) == 0 {
				s.change(func(v *view) { delete(v.nodes, n.Name) })
				r.RemoveNode(n.Name)
				return
			}
			s.change(func(v *view) { v.nodes[n.Name] = n })
			r.SetNode(n)
		},
		func(random *rand.Rand) { // time
			if random.IntN(10) == 0 {
				r.clock.Step(unseen / 2)
			}
			r.Expire()
		},
		func(random *rand.Rand) { // the API server, twice
			p := pod(random)
			r.try(t.Context(), p, node(random).Name, r.of(t.Context(), p), random.IntN(3) == 0)
		},
		func(random *rand.Rand) {
			p := pod(random)
			r.try(t.Context(), p, node(random).Name, r.of(t.Context(), p), false)
		},
	} {
		random := rand.New(rand.NewPCG(18, uint64(i)))
		running.Go(func() {
			for range 3000 {
				do(random)
			}
		})
	}
	running.Wait()
	// The watch shows all pods that are there once more. Of those that are not, nothing comes any more.
	for _, p := range s.pods {
		r.SetPod(p)
	}
	r.clock.Step(2 * unseen)
	r.Expire()
	for set, of := range some {
		p := podOf("asks", 1, of, limitedTo(rack+"=3"))
		l, fresh := r.of(t.Context(), p), newCounts(r.on)
		for name := range s.nodes {
			if got, want := r.counts.full(t.Context(), p.UID, l.revision, name), fresh.full(t.Context(), p.UID, l.revision, name); got != want {
				t.Errorf("%s is full for revision %d: %t, and counted anew %t", name, set, got, want)
			}
		}
	}
	for uid := range s.pods {
		delete(s.pods, uid)
		r.RemovePod(uid)
	}
	for _, of := range some {
		r.counts.tidy(identifier.Identify(podOf("asks", 1, of)).Workload)
	}
	if len(r.counts.of) > 0 || len(r.counts.pods) > 0 || r.Unseen() != 0 || r.locks.Len() != 0 {
		t.Errorf("left are %d workloads, %d pods, %d that are to come and %d locks", len(r.counts.of), len(r.counts.pods), r.Unseen(), r.locks.Len())
	}
}
