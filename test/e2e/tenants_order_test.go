// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Volcano's issue 4947: of 8 CPUs one queue deserves 3 and runs a pod of 4, the other deserves 5, runs 1 and wants 4 more. There the
// pod of the first is evicted and placed again for ever. Here it makes way once.
func TestTenantsVolcano4947(t *testing.T) {
	s := begin(t, tenants.core())
	s.nodes(1, 8, nil)
	s.share()
	s.reserves("q1", 3)
	s.reserves("q2", 5)
	s.deploy("q1", 1, "", asks(4))
	s.pod("small", s.template("q2", ""))
	s.run(map[string]int{"q1": 1, "q2": 1})
	gone := s.evictions()
	s.pod("large", s.template("q2", "", asks(4)))
	s.run(map[string]int{"q1": 0, "q2": 2})
	s.noEvictions(gone)
	s.run(map[string]int{"q1": 0, "q2": 2})
	s.madeWayAre(gone, 1)
}

// runFor are annotations that tell how long a Job's pod runs, to devcluster and to KWOK's own
// general stages, which have it run no longer than their jitter.
func runFor(how string) map[string]string {
	return map[string]string{
		"devcluster.espalier.dev/run-for": how, "pod-complete.stage.kwok.x-k8s.io/delay": how, "pod-complete.stage.kwok.x-k8s.io/jitter-delay": how,
	}
}

// Volcano's issue 377: 12 CPUs, and 24 jobs of one pod that are equal. There they evict each other for ever. Here nobody makes way.
func TestTenantsVolcano377(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(3, 4, nil)
	s.share()
	s.reserves("jobs", 12)
	gone := s.evictions()
	template := s.template("jobs", "")
	maps.Copy(template.Annotations, runFor("24h"))
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range 24 {
		s.make(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("job-", i)}, Spec: batchv1.JobSpec{Template: template}})
	}
	s.run(map[string]int{"jobs": 12})
	s.noEvictions(gone)
	s.run(map[string]int{"jobs": 12})
	s.madeWayAre(gone, 0)
}

// Kueue's issue 7101: 8 slots, one tenant has four pods of 2, the other asks for 3. There more than 33 pods were preempted. Here it is quiet after
// three at most.
func TestTenantsKueue7101(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(1, 8, nil)
	s.share()
	s.reserves("p1", 4)
	s.reserves("p2", 4)
	s.deploy("p1", 4, "", asks(2))
	s.run(map[string]int{"p1": 4})
	gone := s.evictions()
	s.deploy("p2", 1, "", asks(3))
	s.run(map[string]int{"p1": 2, "p2": 1})
	s.noEvictions(gone)
	s.run(map[string]int{"p1": 2, "p2": 1})
	if gone.all() > 3 {
		t.Errorf("%d pods made way, want 3 at most", gone.all())
	}
}

// TV8, and then nodes die: what is beyond the reservations goes first, and then the environments from the right.
func TestTenantsEnvironments(t *testing.T) {
	s := begin(t, tenants.core())
	nodes := s.nodes(10, 4, nil)
	s.share()
	environments := []string{"prod", "uat", "qa", "dev"}
	for i, env := range environments {
		s.reserves(env, 4, func(spec *placementv1alpha1.AllocationSpec) { spec.RankAdjustment = new(int32(3 - i)) })
		s.deploy(env, 5, "", asks(2))
	}
	s.run(map[string]int{"prod": 5, "uat": 5, "qa": 5, "dev": 5})
	gone := s.evictions()
	s.lose(nodes[:3]...) // 30 %
	// Of 14 places 8 are within the reservations. Beyond them each has its third pod before anybody has a fourth.
	s.until("14 pods to run", func() error {
		running := make(map[string]int)
		all := 0
		for _, env := range environments {
			running[env] = len(s.running(env))
			all += running[env]
			if running[env] < 3 || running[env] > 4 {
				return fmt.Errorf("running are %v", running)
			}
		}
		return errorIf(all != 14, "%d run: %v", all, running)
	})
	s.noEvictions(gone)
	s.lose(nodes[3:7]...) // three nodes are left
	s.run(map[string]int{"prod": 2, "uat": 2, "qa": 2, "dev": 0})
	s.noEvictions(gone)
	s.run(map[string]int{"prod": 2, "uat": 2, "qa": 2, "dev": 0})
	if gone.of("prod") > 3 {
		t.Errorf("%d pods of prod made way, which has three beyond its reservation", gone.of("prod"))
	}
}

// TV9: what an allocation leaves unused is its sibling's before it is anybody else's, and the sibling gives it back.
func TestTenantsSibling(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(4, 4, nil)
	s.share()
	s.reserves("t1", 0)
	s.reserves("prod", 6, s.below("t1"))
	s.reserves("test", 2, s.below("t1"))
	s.reserves("x", 8)
	s.deploy("prod", 1, "", asks(2))
	s.deploy("test", 4, "", asks(2))
	s.deploy("x", 6, "", asks(2))
	s.run(map[string]int{"prod": 1, "test": 3, "x": 4})
	gone := s.evictions()
	s.scale("prod", 3)
	s.run(map[string]int{"prod": 3, "test": 1, "x": 4})
	s.noEvictions(gone)
	if gone.of("test") != 2 || gone.all() != 2 {
		t.Errorf("%d pods made way, %d of them of the sibling, want 2", gone.all(), gone.of("test"))
	}
}

// priorityOf gives pods of a template a priority in their allocation.
func priorityOf(template corev1.PodTemplateSpec, priority string) corev1.PodTemplateSpec {
	template.Annotations["espalier.dev/allocation-priority"] = priority
	return template
}

// TV13: of twenty pods that are taken away in the simulation one makes way. It is a bare pod, and does not come back.
func TestTenantsNetVictims(t *testing.T) {
	s := begin(t, tenants)
	s.nodes(10, 10, nil)
	s.share()
	s.reserves("all", 0)
	for i := range 10 {
		s.pod(fmt.Sprint("large-", i), priorityOf(s.template("all", "", asks(8)), "60"))
	}
	s.run(map[string]int{"all": 10})
	for i := range 10 {
		s.pod(fmt.Sprint("small-", i), priorityOf(s.template("all", "", asks(1)), "50"))
	}
	s.run(map[string]int{"all": 20})
	gone := s.evictions()
	s.pod("medium", priorityOf(s.template("all", "", asks(5)), "70"))
	s.until("the medium one to run", func() error {
		if got := s.running("all"); !slices.Contains(got, "medium") || len(got) != 20 { // ten small ones, nine large ones and that
			return fmt.Errorf("running are %q", got)
		}
		return nil
	})
	s.madeWayAre(gone, 1)
	large := slices.DeleteFunc(s.running("all"), func(name string) bool { return !strings.HasPrefix(name, "large-") })
	if len(large) != 9 {
		t.Errorf("the large ones that are left are %q, want 9", large)
	}
	s.delete(named[corev1.Pod](s, "medium"))
	s.run(map[string]int{"all": 19})
	s.noEvictions(gone)
}

// TV14: a pod that is retained on a node which does not answer makes way for nobody.
func TestTenantsRetention(t *testing.T) {
	s := begin(t, tenants)
	s.needsFailures()
	large, small := s.nodes(1, 10, nil)[0], s.node(3, nil)
	s.share()
	s.reserves("all", 0)
	s.pod("a1", priorityOf(s.template("all", "", asks(4), deletedAfter(0)), "100"))
	s.pod("a2", priorityOf(s.template("all", "", asks(4), deletedAfter(3000)), "1"))
	s.run(map[string]int{"all": 2})
	s.live(small)
	gone := s.evictions()
	s.silenced(large)
	err := s.client.CoreV1().Pods(s.ns).Delete(s.ctx, "a1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	s.must(client.IgnoreNotFound(err), "deleting a1, which nobody retains")
	s.pod("a3", priorityOf(s.template("all", "", asks(4)), "100"))
	s.waits("all")
	s.noEvictions(gone)
	if p, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, "a2", metav1.GetOptions{}); err != nil || p.DeletionTimestamp != nil || gone.all() != 0 {
		t.Errorf("a2 did not stay: %v, and %d made way", err, gone.all())
	}
}
