// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// namespaces gives the policies some, by name, with the value of their label env.
func (r *rig) namespaces(env map[string]string) cache.Indexer {
	r.Helper()
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, value := range env {
		r.label(known, name, value)
	}
	r.Policies.namespaces = corelisters.NewNamespaceLister(known)
	return known
}

func (r *rig) label(known cache.Indexer, name, env string) {
	r.Helper()
	must(r, known.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}))
}

// clusterPolicy selects the pods of an app in the namespaces of prod.
func clusterPolicy(name, app string, generation int64) *clusterview.Policy {
	in := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
	in.Spec.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
	in.Spec.PlacementPolicySpec = policy(name, app, generation).Spec
	return clusterview.ReadClusterPolicy(in)
}

// An edit of a policy of the cluster wakes the pods that it is for, in all namespaces.
func TestPoliciesOfTheCluster(t *testing.T) {
	web, db, far, dev := pod("ns", "web", "web"), pod("ns", "db", "db"), pod("elsewhere", "far", "web"), pod("dev", "dev", "web")
	r := start(t, installed, web, db, far, dev)
	known := r.namespaces(map[string]string{"ns": "prod", "elsewhere": "prod", "dev": "dev"})
	r.wakes("db", "dev", "far", "web")
	r.seen(&stored{metav1.ObjectMeta{Name: "all"}, clusterPolicy("all", "web", 1)})
	r.wakes("far", "web")
	r.governs("all", web)
	r.governs("all", far)
	r.governs("", dev)
	r.governs("", db)

	// The policy of a namespace comes before that of the cluster.
	r.cluster.Add(policy("own", "web", 1))
	r.wakes("web")
	r.governs("own", web)

	// A namespace that gets another label has other policies.
	r.label(known, "dev", "prod")
	r.relabelled("dev")
	r.wakes("dev")
	r.governs("all", dev)

	r.gone("all")
	r.wakes("dev", "far")
	r.governs("", far)
	r.governs("own", web)
}

// A pod of a namespace that the scheduler has not seen yet waits for it, and for no longer: it is woken when it is there, or the last policy is gone for
// which that matters.
func TestNamespaceThatIsNotKnownYet(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	known := r.namespaces(nil)
	r.wakes("web")
	r.governs("", web) // without policies of the cluster nobody needs to know
	waits := func() {
		t.Helper()
		r.seen(&stored{metav1.ObjectMeta{Name: "all"}, clusterPolicy("all", "web", 1)})
		if _, err := r.Governing(web); err == nil || !strings.Contains(err.Error(), `namespace "ns" is not known yet`) {
			t.Fatalf("got %v", err)
		}
	}
	waits()
	r.gone("all")
	r.wakes("web")
	waits()
	r.label(known, "ns", "prod")
	r.arrived("ns")
	r.wakes("web")
	r.governs("all", web)
	r.arrived("ns") // and for nobody twice
	r.arrived("other")
	r.gone("all")
	r.wakes("web")
}

// While the policies of the cluster are not known no pod is placed as if there were none.
func TestBothKindsMustBeKnown(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web).wakes("web")
	r.of[ofCluster].Unread()
	if _, err := r.Governing(web); err == nil || !strings.Contains(err.Error(), "policies have not been read yet") || !strings.Contains(err.Error(), "watch clusterplacementpolicies") {
		t.Fatalf("got %v", err)
	}
	r.of[ofCluster].None()
	r.wakes("web")
	r.governs("", web)
}

// A policy that cannot be decoded stops the pods that it selects, and no others.
func TestUndecodable(t *testing.T) {
	web, db, far := pod("ns", "web", "web"), pod("ns", "db", "db"), pod("elsewhere", "far", "web")
	malformed := func(path ...string) *unstructured.Unstructured {
		u := said(policy("bad", "web", 1)).(*unstructured.Unstructured)
		must(t, unstructured.SetNestedField(u.Object, "five", path...))
		return u
	}
	for name, tc := range map[string]struct {
		object  *unstructured.Unstructured
		refused []*corev1.Pod
	}{
		"levels":   {malformed("spec", "levels"), []*corev1.Pod{web}},
		"selector": {malformed("spec", "podSelector"), []*corev1.Pod{web, db}},
		"spec":     {malformed("spec"), []*corev1.Pod{web, db}},
		"priority": {malformed("spec", "priority"), []*corev1.Pod{web}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *cluster) {
				c.there = true
				c.Add(policy("good", "other", 1))
				c.Add(tc.object)
			}, web, db, far).wakes("db", "far", "web")
			for _, p := range []*corev1.Pod{web, db, far} {
				got, err := r.Governing(p)
				must(t, err)
				if slices.Contains(tc.refused, p) != (got != nil) {
					t.Fatalf("pod %s is governed by %v", p.Name, got)
				}
				if got == nil {
					continue
				}
				if _, err := got.Levels(); err == nil || !strings.Contains(err.Error(), "cannot be decoded") || !strings.Contains(err.Error(), `"bad"`) {
					t.Errorf("pod %s is told %v", p.Name, err)
				}
			}
			r.cluster.Modify(policy("bad", "web", 2))
			r.wakes(uids(tc.refused)...)
			r.governs("bad", web)
		})
	}
}

func uids(pods []*corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, string(p.UID))
	}
	slices.Sort(all)
	return all
}

// A policy that overrides overrides also where something else of it cannot be decoded: what its pods say themselves does not let
// them go.
func TestUndecodableOverride(t *testing.T) {
	for name, tc := range map[string]struct {
		mode      any
		overrides bool
	}{
		"it does":          {"Override", true},
		"it does not":      {"Default", false},
		"it says nothing":  {nil, false},
		"it cannot say so": {int64(7), true},
		"it says nonsense": {"Overide", true},
	} {
		t.Run(name, func(t *testing.T) {
			u := said(policy("bad", "web", 1)).(*unstructured.Unstructured)
			spec := u.Object["spec"].(map[string]any)
			spec["levels"], spec["priority"] = "five", int64(9)
			if spec["mode"] = tc.mode; tc.mode == nil {
				delete(spec, "mode")
			}
			s, err := store(u)
			must(t, err)
			bad := s.(*stored).policy
			other := clusterview.ReadPolicy(policy("a", "web", 1))
			if bad.Overrides() != tc.overrides || bad.Compare(other) >= 0 {
				t.Errorf("it overrides: %t, and is before a policy of no priority: %t", bad.Overrides(), bad.Compare(other) < 0)
			}
			constrained := pod("ns", "p", "web")
			constrained.Annotations = map[string]string{clusterview.PlacementAnnotation: "spread=rack"}
			if _, err := clusterview.LevelsOf(constrained, bad, nil); (err != nil) != tc.overrides {
				t.Errorf("a pod with levels of its own is told %v", err)
			}
		})
	}
}

func TestChangesWakeThePodsTheyConcern(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web, pod("ns", "db", "db"), pod("elsewhere", "far", "web"), bound(pod("ns", "bound", "web")))
	r.wakes("db", "far", "web") // known for the first time
	r.cluster.Add(policy("b", "web", 1))
	r.wakes("web")
	r.governs("b", web)
	r.cluster.Modify(policy("b", "web", 2))
	r.wakes("web")
	r.cluster.Add(policy("a", "web", 1)) // comes before b
	r.wakes("web")
	r.governs("a", web)
	r.cluster.Add(policy("c", "web", 1)) // governs nothing, and wakes nobody
	r.cluster.Modify(policy("a", "db", 2))
	r.wakes("db", "web")
	r.governs("b", web)
	r.cluster.Delete(policy("b", "web", 2))
	r.wakes("web")
	r.governs("c", web)
}

// The controller writes the status of each policy; that must wake nobody.
func TestStatusWakesNobody(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web).wakes("web")
	r.cluster.Add(policy("a", "web", 1))
	r.wakes("web")
	reported := policy("a", "web", 1)
	reported.Status.GovernedPods = new(int32(1))
	r.cluster.Modify(reported)
	r.cluster.Modify(policy("a", "web", 2))
	r.wakes("web")
	select {
	case uids := <-r.woken:
		t.Errorf("%q were woken once more", uids)
	default:
	}
}

// waiting are policies that are known, none so far, and a pod that waits; woken is told each time that it is woken.
func waiting(t *testing.T, woken func()) *Policies {
	t.Helper()
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	must(t, pods.Add(pod("ns", "web", "web")))
	p := newPolicies(refusal.NewWaiting(corelisters.NewPodLister(pods), func(map[string]*corev1.Pod) { woken() }))
	p.of = [kinds]*optionalkind.Kind{optionalkind.Known(), optionalkind.Known()}
	return p
}

// Somebody who edits a policy all the time has its pods tried now and then.
func TestEditsWakeNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards woken: each timer is a goroutine
		var woken []time.Duration
		begun := time.Now()
		p := waiting(t, func() {
			mu.Lock()
			defer mu.Unlock()
			woken = append(woken, time.Since(begun))
		})
		edit := func(generation int64) {
			s, err := store(said(policy("a", "web", generation)))
			must(t, err)
			p.seen(s)
		}
		const edits = 600
		for i := range edits {
			edit(int64(i + 1))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		mu.Lock()
		if most := 10; len(woken) > most || len(woken) < 5 {
			t.Errorf("%d edits in a minute have woken the pod at %v, want at most %d times", edits, woken, most)
		}
		mu.Unlock()
		time.Sleep(longestPause + time.Second)
		synctest.Wait()
		mu.Lock()
		last := len(woken)
		mu.Unlock()
		if got, err := p.Governing(pod("ns", "web", "web")); err != nil || got.Generation != edits {
			t.Errorf("it is governed by generation %v, %v", got, err)
		}
		// After a time without edits the next one wakes at once.
		time.Sleep(time.Minute)
		edit(edits + 1)
		mu.Lock()
		if len(woken) != last+1 {
			t.Errorf("an edit after a minute has woken %d times", len(woken)-last)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
	})
}

// A pod that was refused for a policy that came and went between two wakings is woken.
func TestEditsInBetweenWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken atomic.Int32
		p := waiting(t, func() { woken.Add(1) })
		put := func(list ...*clusterview.Policy) {
			p.replace("ns", func([]*clusterview.Policy) []*clusterview.Policy { return list })
		}
		other, bad := clusterview.ReadPolicy(policy("other", "db", 1)), clusterview.ReadPolicy(policy("bad", "web", 1))
		put(other)
		put(other, bad)
		put(other) // the pod may have been refused by now
		time.Sleep(longestPause + time.Second)
		synctest.Wait()
		if n := woken.Load(); n != 1 {
			t.Errorf("it was woken %d times, want once", n)
		}
		put(bad)
		p.edits.stop()
		put(bad, other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := woken.Load(); n != 2 {
			t.Errorf("after the end it was woken %d times more, want once for the edit before", n-1)
		}
	})
}
