// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// A node that refuses every pod always looks the emptiest. The stock scheduler has fed
// one of twenty thousands of pods in a minute, and the Deployment was never ready.
func TestOneNodeRejects(t *testing.T) {
	s := begin(t, faults.core())
	_, bad := s.bad("rejected", 20, 10)
	lost := s.losses()
	s.deploy("app", 60, "")
	s.settled("app", 60)
	s.lostAtMost(lost, 6, bad)
	s.marked(lost, bad, "Deployment", "app", 60)
	s.lostAtMost(lost, 6, bad)
}

// The same of a whole zone: its nodes add up, or each of them would be tried until it
// is marked.
func TestOneZoneRejects(t *testing.T) {
	s := begin(t, faults, byZone)
	bad := s.nodes(4, 20, zone("zone-a"))
	s.nodes(4, 20, zone("zone-b"))
	s.nodes(4, 20, zone("zone-c"))
	s.fail("rejected", bad...)
	lost := s.losses()
	s.deploy("app", 30, "spread="+zoneLabel)
	o := s.settled("app", 30)
	s.lostAtMost(lost, 12, bad...)
	s.exactly(o, 0, map[string]int{"zone-a": 0, "zone-b": 15, "zone-c": 15})
}

// A Job replaces what fails by itself, and ends.
func TestJobWithABadNode(t *testing.T) {
	s := begin(t, faults)
	_, bad := s.bad("error", 20, 20)
	lost := s.losses()
	template := s.template("app", "")
	template.Annotations["devcluster.espalier.dev/run-for"] = "2s"
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.client.BatchV1().Jobs(s.ns).Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](200), Parallelism: ptr.To[int32](50), BackoffLimit: ptr.To[int32](50), Template: template},
	}, metav1.CreateOptions{})
	s.must(err, "creating Job")
	s.until("the Job to complete", func() error {
		job, err := s.client.BatchV1().Jobs(s.ns).Get(s.ctx, "job", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.Status.Succeeded != 200 {
			return fmt.Errorf("%d of 200 pods succeeded, %d failed", job.Status.Succeeded, job.Status.Failed)
		}
		return nil
	})
	s.lostAtMost(lost, 6, bad)
}

// Pods that hang on a node are not replaced, so nothing but the status of a container,
// or an event, says that there is something wrong. Pods that come later stay away.
func TestPodsHangOnANode(t *testing.T) {
	for as, l := range map[string]label{"image": faults.core(), "create": faults, "mount": faults, "sandbox": faults} {
		t.Run(as, func(t *testing.T) {
			s := begin(t, l)
			_, bad := s.bad(as, 4, 30)
			s.deploy("app", 4, "")
			hangs := s.hanging(bad)
			if hangs != 1 {
				s.Fatalf("%d pods hang on %s, want one of four", hangs, bad)
			}
			// One after the other, as it comes to look the best again: when the scheduler has heard of the last one, which takes
			// a few more pods on a busy machine.
			n := 4
			for s.told(nodeFaulty, "Node", bad) == 0 {
				if n += 4; n > 100 {
					s.Fatalf("the node is not faulty, and there are %d pods", n)
				}
				s.scale("app", n)
				s.placed("app", n)
			}
			if hangs = s.hanging(bad); hangs > 6 {
				s.Errorf("%d pods hang on %s, want at most 6", hangs, bad)
			}
			s.Logf("%d pods hang", hangs)
			s.heal(bad)
			s.settled("app", n)
		})
	}
}

// placed waits until n pods of the app have nodes, and those that do not hang run.
func (s *story) placed(app string, n int) {
	s.Helper()
	s.observe("app="+app, n, func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodRunning && p.Status.ContainerStatuses == nil {
			return fmt.Errorf("pod %s on node %q is %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		}
		return nil
	})
}

// hanging waits until a node has pods and all of them hang, and returns how many.
func (s *story) hanging(node string) int {
	s.Helper()
	n := 0
	s.until("pods to hang on "+node, func() error {
		pods, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		n = len(pods.Items)
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodPending || p.Status.ContainerStatuses == nil {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		if n == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	return n
}

// A bad image fails everywhere. No node is to blame, and nobody is told that one is.
func TestImageThatCrashesEverywhere(t *testing.T) {
	s := begin(t, faults)
	s.needsFailures()
	profile := s.ownFaults(map[string]any{})
	scheduler := s.withMetrics(profile)
	nodes := s.nodes(5, 20, nil)
	template := s.template("app", "")
	template.Annotations[failAnnotation] = "crashloop"
	s.deployment("app", 20, template)
	before := s.observe("app=app", 20, func(p *corev1.Pod) error {
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].RestartCount < 4 {
			return fmt.Errorf("pod %s has not crashed four times", p.Name)
		}
		return nil
	})
	s.until("the scheduler to have seen 80 failures", func() error {
		if n := scheduler.metric("espalier_failures_total"); n < 80 {
			return fmt.Errorf("it has seen %v", n)
		}
		return nil
	})
	for _, node := range nodes {
		if n := s.told(nodeFaulty, "Node", node); n > 0 {
			s.Errorf("%s was called faulty %d times", node, n)
		}
	}
	if n := s.told(nodeFaulty, "Deployment", "app"); n > 0 {
		s.Errorf("the Deployment was told of faulty nodes %d times", n)
	}
	if n := scheduler.metric("espalier_faulty_nodes"); n != 0 {
		s.Errorf("%v nodes are faulty", n)
	}
	if n := scheduler.metric("espalier_faulty_node_marks_total"); n != 0 {
		s.Errorf("nodes were marked %v times", n)
	}
	// The next pods go wherever the fewest are, as if nothing had been. That need not end with as many
	// on each node: the first twenty crash while they are placed, and a node whose first crash is seen
	// last looks the best so long.
	s.scale("app", 30)
	after := s.observe("app=app", 30, func(*corev1.Pod) error { return nil })
	counts := countsOn(before, nodes)
	want := filled(counts, 10)
	if got := countsOn(after, nodes); !slices.Equal(got, want) {
		s.Errorf("ten pods more make %v of nodes with %v, want %v: %v", got, counts, want, after.OnNodes())
	}
	s.Logf("the first twenty pods were on nodes as %v, with the next ten as %v", counts, want)
}

// countsOn are the numbers of pods on the nodes, in order.
func countsOn(o *rig.Observation, nodes []string) []int {
	on := o.OnNodes()
	var counts []int
	for _, node := range nodes {
		counts = append(counts, on[node])
	}
	slices.Sort(counts)
	return counts
}

// filled is what becomes of the counts when each of so many pods goes where the fewest are.
func filled(counts []int, pods int) []int {
	counts = slices.Clone(counts)
	for range pods {
		counts[0]++
		slices.Sort(counts)
	}
	return counts
}
