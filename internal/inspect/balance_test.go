// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestBalance(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 2)
	foreign, malformed := template(), template()
	foreign.Spec.SchedulerName = "default-scheduler"
	malformed.Annotations = map[string]string{"espalier.dev/placement": "spread="}
	c.deployment("even", template(), "a-1", "b-1")
	c.deployment("uneven", template(), "a-1", "a-1", "a-2", "a-1")
	c.deployment("foreign", foreign, "a-1")
	c.deployment("malformed", malformed, "b-1")
	c.deployment("new", template())
	b, err := c.open().Balance(t.Context(), "ns", func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, w := range b.Workloads {
		got += fmt.Sprintf("%s %d/%d %v %t\n", w.Workload, w.Misplaced, w.Pods, w.ByLevel, w.Note != "")
	}
	want := "deployment/uneven 3/4 [{topology.kubernetes.io/zone 2} {node 1}] false\n" +
		"deployment/even 0/2 [{topology.kubernetes.io/zone 0} {node 0}] false\n" +
		"deployment/malformed 0/0 [] true\n" +
		"deployment/new 0/0 [{topology.kubernetes.io/zone 0} {node 0}] false\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b, err := c.open().Balance(t.Context(), "other", func(int, int) {}); err != nil || len(b.Workloads) != 0 {
		t.Errorf("in another namespace: %+v, %v", b, err)
	}
}

// Workloads with the same needs may be told apart all the same: by levels that leave nodes out, or by who refuses their pods.
func TestBalanceTellsWorkloadsApart(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 1)
	c.zone("b", 1)
	c.Add(st.MakeNode().Name("x").UID("x").Label(corev1.LabelHostname, "x").Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"}).Obj())
	refused, excluding, plain := template(), template(), template()
	refused.Spec.RuntimeClassName = new("none")
	excluding.Annotations = map[string]string{"espalier.dev/placement": "spread=topology.kubernetes.io/zone;nodesWithoutKey=Exclude"}
	plain.Annotations = map[string]string{"espalier.dev/placement": "spread=kubernetes.io/hostname"}
	c.deployment("a-refused", refused, "a-1")
	c.deployment("b-excluding", excluding, "a-1", "b-1")
	c.deployment("c-plain", plain, "a-1", "a-1", "b-1", "b-1")
	b, err := c.open().Balance(t.Context(), "", func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %d", b.Workloads[0].Workload, b.Workloads[0].Misplaced); got != "deployment/c-plain 1" {
		t.Errorf("the least even is %s of %+v", got, b.Workloads)
	}
}
