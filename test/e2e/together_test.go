// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two workloads that come at the same time, pod by pod between each other, are
// each as even as if it were alone.
func TestTwoWorkloadsAtOnce(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(4, 50, zone("zone-a"))
	s.nodes(2, 50, zone("zone-b"))
	s.nodes(1, 50, zone("zone-c"))
	s.deploy("one", 40, "spread="+zoneLabel)
	s.deploy("two", 32, "spread="+zoneLabel)
	one, two := s.settled("one", 40), s.settled("two", 32)
	s.counts(one, 0, 14, 13, 13)
	s.even(one)
	s.counts(two, 0, 11, 11, 10)
	s.even(two)
}

// A DaemonSet's pods have their nodes given: one each, whatever its template asks
// for, and the workload beside it is not pushed about by them.
func TestDaemonSet(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(4, 20, zone("zone-a"))
	s.nodes(2, 20, zone("zone-b"))
	_, err := s.client.AppsV1().DaemonSets(s.ns).Create(s.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selects("agent"), Template: s.template("agent", "spread="+zoneLabel)},
	}, metav1.CreateOptions{})
	s.must(err, "creating DaemonSet agent")
	for node, n := range s.settled("agent", 6).OnNodes() {
		if n != 1 {
			s.Errorf("node %s has %d pods of the DaemonSet, want 1", node, n)
		}
	}

	s.deploy("app", 12, "spread="+zoneLabel)
	o := s.settled("app", 12)
	s.counts(o, 0, 6, 6)
	s.even(o)

	// A node that comes later gets its pod, too.
	s.nodes(1, 20, zone("zone-b"))
	s.settled("agent", 7)
}

// Two Deployments that share a workload label are spread as one: what one of them
// cannot have evenly, the other makes up for.
func TestSeveralDeploymentsAsOneWorkload(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(2, 50, zone("zone-b"))
	s.nodes(2, 50, zone("zone-c"))
	for _, d := range []struct {
		name     string
		replicas int32
		pinned   bool
	}{{"pinned", 8, true}, {"free", 16, false}} {
		template := s.template(d.name, "spread="+zoneLabel)
		template.Labels[workloadLabel] = "shop"
		if d.pinned {
			template.Spec.NodeSelector[zoneLabel] = "zone-a"
		}
		_, err := s.client.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: d.name},
			Spec:       appsv1.DeploymentSpec{Replicas: new(d.replicas), Selector: selects(d.name), Template: template},
		}, metav1.CreateOptions{})
		s.must(err, "creating Deployment "+d.name)
		s.settled(d.name, int(d.replicas))
	}
	o := s.observe(workloadLabel+"=shop", 24, func(*corev1.Pod) error { return nil })
	s.counts(o, 0, 8, 8, 8)
}
