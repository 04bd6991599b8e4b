// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// change changes an allocation.
func (s *story) change(a *placementv1alpha1.Allocation, change func(*placementv1alpha1.AllocationSpec)) {
	s.Helper()
	s.until("changing allocation "+a.Name, func() error {
		if err := world.objects.Get(s.ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		change(&a.Spec)
		return world.objects.Update(s.ctx, a)
	})
}

// TV11: as many pods run as the maximum allows. One that comes first then has others leave, which wait from then on.
func TestTenantsMaximum(t *testing.T) {
	s := begin(t, tenants.core())
	s.nodes(2, 10, nil)
	s.share()
	s.reserves("all", 6, func(spec *placementv1alpha1.AllocationSpec) { spec.MaxUtilizationPercent = new(int32(100)) })
	for i := range int64(4) {
		s.pod(fmt.Sprint("p", i+1), priorityOf(s.template("all", "", asks(i+1)), fmt.Sprint(4-i)))
	}
	s.runningAre("all", "p1", "p2", "p3")
	s.alter(named[corev1.Pod](s, "p4"), `{"metadata":{"annotations":{"espalier.dev/allocation-priority":"5"}}}`)
	s.runningAre("all", "p1", "p4")
}

// tellsOnce waits until one Event with a reason has told something of a pod, and wants no more.
func (s *story) tellsOnce(reason, pod, part string) {
	s.Helper()
	s.until(fmt.Sprintf("pod %s to be told %s", pod, reason), func() error {
		list, err := s.client.EventsV1().Events(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		var notes []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == pod {
				notes = append(notes, e.Note)
				if e.Series != nil {
					s.Errorf("it was told %d times", e.Series.Count)
				}
			}
		}
		return errorIf(len(notes) != 1 || !strings.Contains(notes[0], part), "it was told %q, want %q once", notes, part)
	})
}

// A pod that waits before the scheduling queue has an Event that says why, and another one for another reason. Those that run have none.
func TestTenantsSayWhyPodsWait(t *testing.T) {
	s := begin(t, tenants.core())
	s.nodes(1, 10, nil)
	s.share()
	maximum := func(percent int32) func(*placementv1alpha1.AllocationSpec) {
		return func(spec *placementv1alpha1.AllocationSpec) {
			spec.Partition, spec.MaxUtilizationPercent = s.name, &percent
		}
	}
	a := s.reserves("all", 1, maximum(100))
	s.pod("p1", s.template("all", ""))
	s.runningAre("all", "p1")
	s.pod("p2", s.template("all", ""))
	s.tellsOnce("AllocationAtMaximum", "p2", fmt.Sprintf("position 2 of 2 in partition %q, allocation %q: raise maxUtilizationPercent", s.name, a.Name))
	s.change(a, func(spec *placementv1alpha1.AllocationSpec) { spec.Partition = "gone" })
	s.tellsOnce("NotInOrder", "p2", fmt.Sprintf(`it waits as a pod of allocation %q: allocation %q is not accepted: spec.partition: there is no Partition "gone"`, a.Name, a.Name))
	s.change(a, maximum(200))
	s.runningAre("all", "p1", "p2")
	s.tellsOnce("AllocationAtMaximum", "p2", "")
	for _, reason := range []string{"WaitsForTurn", "AllocationAtMaximum", "NotInOrder"} {
		if n := s.told(reason, "Pod", "p1"); n > 0 {
			t.Errorf("p1, which runs, was told %s %d times", reason, n)
		}
	}
}

// TV23: so many run as the group counts, with the lowest numbers, and the others stand by.
func TestTenantsIdentities(t *testing.T) {
	s := begin(t, tenants.core())
	s.nodes(2, 20, nil)
	s.share()
	count := func(n int32) func(*placementv1alpha1.AllocationSpec) {
		return func(spec *placementv1alpha1.AllocationSpec) {
			spec.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "shards", Count: &n}}
		}
	}
	a := s.reserves("shard", 0, count(3))
	template := s.template("shard", "")
	template.Labels["espalier.dev/identity-group"] = "shards"
	s.deployment("shard", 10, template)
	numbers := func(want ...string) (pods map[string]string) {
		t.Helper()
		s.until(fmt.Sprintf("numbers %q to be held", want), func() error {
			var got []string
			pods = make(map[string]string)
			for _, p := range s.podsOf("shard") {
				if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
					id := p.Annotations["espalier.dev/identity"]
					got, pods[id] = append(got, id), p.Name
				}
			}
			slices.Sort(got)
			return errorIf(!slices.Equal(got, want), "held are %q", got)
		})
		return pods
	}
	held := numbers("0", "1", "2")
	s.delete(named[corev1.Pod](s, held["1"]))
	if after := numbers("0", "1", "2"); after["1"] == held["1"] || after["0"] != held["0"] {
		t.Errorf("held were %v, and are %v", held, after)
	}
	s.change(a, count(5))
	numbers("0", "1", "2", "3", "4")
	s.change(a, count(2))
	numbers("0", "1")
}

// Pods that stand by take nothing of the maximum from others of their allocation, though these come after them.
func TestTenantsStandBys(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(1, 20, nil)
	s.share()
	s.reserves("all", 4, func(spec *placementv1alpha1.AllocationSpec) {
		spec.MaxUtilizationPercent = new(int32(100))
		spec.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "shards", Count: new(int32(2))}}
	})
	shard := priorityOf(s.template("all", ""), "50")
	shard.Labels["espalier.dev/identity-group"] = "shards"
	for i := range 6 {
		s.pod(fmt.Sprint("shard-", i), shard)
	}
	s.runningAre("all", "shard-0", "shard-1")
	for i := range 3 {
		s.pod(fmt.Sprint("web-", i), s.template("all", ""))
	}
	s.runningAre("all", "shard-0", "shard-1", "web-0", "web-1")
	s.tellsOnce("AllocationAtMaximum", "web-2", "")
}

// What is wrong with an allocation is a condition. Its pods that run go on, and those of others do not even notice.
func TestTenantsBadInput(t *testing.T) {
	s := begin(t, tenants.core())
	s.nodes(1, 4, nil)
	s.share()
	gone := s.evictions()
	good := s.reserves("good", 0)
	s.deploy("good", 2, "")
	bad := s.reserves("bad", 2)
	s.deploy("bad", 2, "")
	s.run(map[string]int{"good": 2, "bad": 2})
	s.accepted(good, metav1.ConditionTrue, placementv1alpha1.ReasonValid)
	for reason, change := range map[string]func(*placementv1alpha1.AllocationSpec){
		placementv1alpha1.ReasonParentCycle:      func(spec *placementv1alpha1.AllocationSpec) { spec.Parent = s.name + "-bad" },
		placementv1alpha1.ReasonParentMissing:    func(spec *placementv1alpha1.AllocationSpec) { spec.Parent = "gone" },
		placementv1alpha1.ReasonPartitionMissing: func(spec *placementv1alpha1.AllocationSpec) { spec.Partition = "gone" },
		placementv1alpha1.ReasonInvalid: func(spec *placementv1alpha1.AllocationSpec) {
			spec.Reserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}
		},
	} {
		s.change(bad, func(spec *placementv1alpha1.AllocationSpec) {
			spec.Parent, spec.Partition, spec.Reserved = "", s.name, nil // one thing is wrong at a time
			change(spec)
		})
		s.accepted(bad, metav1.ConditionFalse, reason)
	}
	for patch, says := range map[string]string{
		`{"spec":{"reserved":{"cpu":"1e2000000000"}}}`:                                                                       "spec.reserved.cpu",
		`{"spec":{"reserved":{"cpu":"1e-2000000000"}}}`:                                                                      "spec.reserved.cpu",
		`{"spec":{"assignments":[{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"in","values":["b"]}]}}]}}`: `supported values: "In", "NotIn", "Exists", "DoesNotExist"`,
	} {
		if err := world.objects.Patch(s.ctx, bad, client.RawPatch(types.MergePatchType, []byte(patch))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", patch, err, says)
		}
	}
	typo := s.reserves("typo", 0, func(spec *placementv1alpha1.AllocationSpec) {
		spec.Reserved, spec.MaxUtilizationPercent = corev1.ResourceList{"cpus": resource.MustParse("10")}, new(int32(100))
	})
	s.accepted(typo, metav1.ConditionTrue, placementv1alpha1.ReasonValid)
	second := s.reserves("second", 0, func(spec *placementv1alpha1.AllocationSpec) { spec.Assignments[0].PodSelector = selects("good") })
	becomes(s, second.Name, "the conflict to be said", func(now *placementv1alpha1.Allocation) error {
		return errorIf(!meta.IsStatusConditionTrue(now.Status.Conditions, placementv1alpha1.ConditionConflicted), "its conditions are %v", now.Status.Conditions)
	})
	s.must(world.objects.Delete(s.ctx, good), "deleting an allocation under its pods")
	s.noEvictions(gone)
	s.run(map[string]int{"good": 2, "bad": 2})
	s.madeWayAre(gone, 0)
}

// Limits of domains hold while others make way: of a zone that may have one pod of a workload the one that is there goes for another, though there is
// capacity beside it.
func TestTenantsLimits(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(2, 4, zone("zone-a"))
	s.share()
	s.reserves("prod", 4)
	s.reserves("dev", 0)
	limited := func(app string) corev1.PodTemplateSpec {
		template := s.template(app, "")
		template.Annotations[limitsAnnotation], template.Labels["espalier.dev/workload"] = zoneLabel+"=1", "limited"
		return template
	}
	s.pod("other", s.template("dev", ""))
	s.pod("first", limited("dev"))
	s.runningAre("dev", "first", "other")
	gone := s.evictions()
	s.pod("second", limited("prod"))
	s.runningAre("prod", "second")
	s.runningAre("dev", "other")
	s.noEvictions(gone)
	s.madeWayAre(gone, 1)
}
