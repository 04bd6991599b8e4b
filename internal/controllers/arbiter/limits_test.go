// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
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
		if err := cache.Delete(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		l.policiesChanged()
		if refused() {
			t.Error("the limit of a policy holds that is gone")
		}
	})
}
