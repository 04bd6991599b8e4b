// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

const rack = "example.com/rack"

// inRack is a node of a rack.
func inRack(name, value string) *corev1.Node {
	n := nodeOf(name, 100_000)
	n.Labels[rack] = value
	return n
}

// of is a pod of a ReplicaSet with a hash.
func of(set, hash string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-template-hash": hash}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}}
	}
}

func limitedTo(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: text} }
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func TestLimits(t *testing.T) {
	web := of("web-1", "1")
	for name, tc := range map[string]struct {
		there []client.Object
		// reserved are pods that were admitted to node a1 and have not been seen.
		reserved []*corev1.Pod
		pod      *corev1.Pod
		refused  bool
	}{
		"one in the rack":           {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web, limitedTo(rack+"=1")), true},
		"room for two":              {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web, limitedTo(rack+"=2")), false},
		"one in another rack":       {[]client.Object{onNode(podOf("1", 1, web), "b1")}, nil, podOf("p", 1, web, limitedTo(rack+"=1")), false},
		"one of another revision":   {[]client.Object{onNode(podOf("1", 1, of("web-2", "2")), "a2")}, nil, podOf("p", 1, web, limitedTo(rack+"=1")), false},
		"one that has ended":        {[]client.Object{onNode(podOf("1", 1, web, ended), "a2")}, nil, podOf("p", 1, web, limitedTo(rack+"=1")), false},
		"one that is to come":       {[]client.Object{podOf("1", 1, web)}, []*corev1.Pod{podOf("1", 1, web)}, podOf("p", 1, web, limitedTo(rack+"=1")), true},
		"without a limit":           {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web), false},
		"a limit nobody can read":   {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web, limitedTo("one")), false},
		"a limit over no label":     {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web, limitedTo("example.com/none=1")), false},
		"a pod of other schedulers": {[]client.Object{onNode(podOf("1", 1, web), "a2")}, nil, podOf("p", 1, web, limitedTo(rack+"=1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }), false},
		// Two ReplicaSets of one label may be of one Deployment, so that one is an older revision of the other.
		"another owner of the workload": {
			[]client.Object{onNode(podOf("1", 1, of("web-2", "2"), labelled(clusterview.WorkloadLabel, "w")), "a2")}, nil,
			podOf("p", 1, web, labelled(clusterview.WorkloadLabel, "w"), limitedTo(rack+"=1")), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := apiWith(t, append(tc.there, inRack("a1", "a"), inRack("a2", "a"), inRack("b1", "b"))...)
				l := &Limits{Cache: cache, Schedulers: []string{"espalier-scheduler"}}
				ledger := ledgerOf(inRack("a1", "a"))
				for _, o := range tc.there {
					ledger.SetPod(o.(*corev1.Pod))
				}
				for _, p := range tc.reserved {
					ledger.Admit(t.Context(), p, "a1", nil, false)
				}
				got := ledger.Admit(t.Context(), tc.pod, "a1", l.of(t.Context(), tc.pod), false)
				if (len(got) > 0) != tc.refused {
					t.Errorf("it is refused: %q", got)
				}
			})
		})
	}
}

// A policy's limit holds as soon as policies are known to be there, and no longer than the policy is.
func TestLimitsOfPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "racks"}}
		policy.Spec.DomainLimits = []placementv1alpha1.DomainLimit{{TopologyKey: rack, MaxPods: 1}}
		web := of("web-1", "1")
		there := onNode(podOf("1", 1, web), "a2")
		cache := apiWith(t, there, inRack("a1", "a"), inRack("a2", "a"), policy, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		l := &Limits{Cache: cache, Schedulers: []string{"espalier-scheduler"}}
		refused := func() bool {
			ledger := ledgerOf(inRack("a1", "a"))
			ledger.SetPod(there)
			return len(ledger.Admit(t.Context(), podOf("p", 1, web), "a1", l.of(t.Context(), podOf("p", 1, web)), false)) > 0
		}
		if refused() {
			t.Error("a policy holds whose kind may not be there")
		}
		l.policiesChanged()
		if !refused() {
			t.Error("the limit of a policy does not hold")
		}
		controllertest.Must(t, cache.Delete(t.Context(), policy))
		l.policiesChanged()
		if refused() {
			t.Error("the limit of a policy holds that is gone")
		}
	})
}

// view is a cache of nodes and pods.
type view struct {
	nodes       map[string]*corev1.Node
	pods        map[types.UID]*corev1.Pod
	lists, gets int
	// listing is called with each list.
	listing func()
}

func (v *view) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	v.gets++
	if p, is := o.(*corev1.Pod); is {
		*p = *v.pods[types.UID(key.Name)]
		return nil
	}
	n, there := v.nodes[key.Name]
	if !there {
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	*o.(*corev1.Node) = *n
	return nil
}

func (v *view) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	v.lists++
	if v.listing != nil {
		v.listing()
	}
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	for _, p := range v.pods {
		if workload := identifier.Identify(p).Workload; asked.FieldSelector.String() == byWorkload+"="+workload.String() {
			list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *p)
		}
	}
	return nil
}

// racks is a cluster that changes, with what the arbiter knows of it.
type racks struct {
	view
	*Limits
	*Ledger
	clock *clocktesting.FakeClock
}

func newRacks() *racks {
	r := &racks{view: view{nodes: make(map[string]*corev1.Node), pods: make(map[types.UID]*corev1.Pod)}, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	r.Limits, r.Ledger = &Limits{Cache: &r.view, Schedulers: []string{"espalier-scheduler"}}, NewLedger(r.clock)
	return r
}

func (r *racks) node(n *corev1.Node) {
	r.view.nodes[n.Name] = n
	r.SetNode(n)
}

func (r *racks) pod(p *corev1.Pod) {
	r.pods[p.UID] = p
	r.SetPod(p)
}

// some are pods of two revisions of one workload, and of two owners in another, which count for each other.
var some = []func(*corev1.Pod){
	of("web-1", "1"), of("web-1", "2"), ofStatefulSet("db-1"), ofStatefulSet("db-2"),
}

func ofStatefulSet(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"controller-revision-hash": "1", clusterview.WorkloadLabel: "shop"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: types.UID(name), Controller: new(true)}}
	}
}

func (r *racks) gone(uid types.UID) {
	delete(r.pods, uid)
	r.RemovePod(uid)
}

// What is kept up to date says the same as what is counted anew, whatever has happened.
func TestCountsAreThoseOfAFreshCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRacks()
		draw := func(label string, below int) int { return rapid.IntRange(0, below-1).Draw(t, label) }
		pod := func() *corev1.Pod {
			return podOf(fmt.Sprint("p", draw("pod", 6)), 1, some[draw("revision", len(some))], limitedTo(rack+"=2"))
		}
		known := func() *corev1.Pod {
			p := pod()
			if is := r.pods[p.UID]; is != nil {
				p = is.DeepCopy()
			}
			return p
		}
		node := func() string { return fmt.Sprint("n", draw("node", 4)) }
		t.Repeat(map[string]func(*rapid.T){
			"a node": func(*rapid.T) { r.node(inRack(node(), fmt.Sprint(draw("rack", 2)))) },
			"a node is gone": func(*rapid.T) {
				name := node()
				delete(r.view.nodes, name)
				r.RemoveNode(name)
			},
			"a pod":   func(*rapid.T) { r.pod(known()) },
			"another": func(*rapid.T) { r.pod(pod()) },
			"admitted": func(*rapid.T) {
				p := known()
				r.pod(p)
				r.try(t.Context(), p, node(), r.of(t.Context(), p), draw("dry run", 2) == 1)
			},
			"bound": func(*rapid.T) { r.pod(onNode(known(), node())) },
			"terminating": func(*rapid.T) {
				p := known()
				p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
				r.pod(p)
			},
			"ended": func(*rapid.T) { p := known(); ended(p); r.pod(p) },
			"gone": func(*rapid.T) {
				p := pod()
				r.gone(p.UID)
			},
			"time": func(*rapid.T) { r.clock.Step(time.Duration(draw("seconds", 30)) * time.Second); r.Expire() },
			"": func(t *rapid.T) {
				for set := range some {
					p := podOf(fmt.Sprint("p", set), 1, some[set], limitedTo(rack+"=2"))
					l, fresh := r.of(t.Context(), p), newCounts(r.on)
					for name := range r.view.nodes {
						if got, want := r.counts.full(t.Context(), p.UID, l.revision, name), fresh.full(t.Context(), p.UID, l.revision, name); got != want {
							t.Fatalf("%s is full for revision %d: %t, and counted anew %t", name, set, got, want)
						}
					}
				}
			},
		})
	})
}

// A workload's pods are looked through once, and not for each binding.
func TestPodsAreCountedOnce(t *testing.T) {
	r := newRacks()
	web := of("web-1", "1")
	for i := range 100 {
		r.node(inRack(fmt.Sprint("n", i), fmt.Sprint("r", i%10)))
	}
	bind := func(i int) {
		t.Helper()
		p, node := podOf(fmt.Sprint("p", i), 1, web, limitedTo(rack+"=10")), fmt.Sprint("n", i%100)
		r.pod(p)
		if reasons, _ := r.try(t.Context(), p, node, r.of(t.Context(), p), false); (len(reasons) > 0) != (i >= 100) {
			t.Fatalf("pod %d, of racks that may have ten each: %q", i, reasons)
		}
		r.pod(onNode(p, node))
	}
	for i := range 101 {
		bind(i)
	}
	if r.lists != 1 {
		t.Errorf("they are listed %d times", r.lists)
	}
}

// A pod that was admitted to one node may be tried on another of the same rack: it will be on one of them alone. For other pods it counts on both.
func TestAPodIsNotInItsOwnWay(t *testing.T) {
	r := newRacks()
	web := of("web-1", "1")
	r.node(inRack("n1", "r"))
	r.node(inRack("n2", "r"))
	admits := func(name string, node string, most int) bool {
		p := podOf(name, 1, web, limitedTo(fmt.Sprint(rack, "=", most)))
		r.pod(p)
		reasons, _ := r.try(t.Context(), p, node, r.of(t.Context(), p), false)
		return len(reasons) == 0
	}
	if !admits("p", "n1", 1) || !admits("p", "n2", 1) {
		t.Error("it is refused")
	}
	if admits("q", "n1", 2) {
		t.Error("another one is admitted, though the first may come to either node")
	}
}
