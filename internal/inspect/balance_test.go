// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"testing"
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
