// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestExplainPending(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(ours)
	}
	c.Add(pod("large").Req(map[corev1.ResourceName]string{"cpu": "5"}).Obj())
	c.Add(pod("choosy").NodeSelector(map[string]string{"disk": "ssd"}).Obj())
	c.Add(pod("fine").Obj())
	c.Add(pod("hopeless").NodeSelector(map[string]string{"disk": "ssd"}).Req(map[corev1.ResourceName]string{"cpu": "5"}).Obj())
	c.Add(pod("foreign").SchedulerName("other").Obj())
	opened := c.open()
	for name, want := range map[string]string{
		"large":    "0 of 2, [Insufficient cpu], [{request 4 of cpu in place of 5 2}]",
		"choosy":   "0 of 2, [node(s) didn't match Pod's node affinity/selector], [{remove disk=ssd from nodeSelector 2}]",
		"fine":     "2 of 2, [], []",
		"hopeless": "0 of 2, [Insufficient cpu], []",
		"foreign":  "0 of 2, [], []",
	} {
		e, err := opened.Explain(t.Context(), "ns", name)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, r := range e.Reasons {
			reasons = append(reasons, r.Reason)
		}
		if got := fmt.Sprintf("%d of %d, %v, %v", e.Fits, e.Nodes, reasons, e.Helps); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := opened.Explain(t.Context(), "ns", "none"); err == nil {
		t.Error("a pod that is not there is explained")
	}
}

// The way to a bound pod ends at its node.
func TestExplainBound(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 2)
	c.deployment("web", template(), "a-1", "a-2", "b-2")
	e, err := c.open().Explain(t.Context(), "ns", "web-1-2")
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Path) != 2 || e.Path[0].Chosen.Name != "b" || e.Path[1].Chosen.Name != "b-2" || e.Path[0].Others[0].Pods != 2 {
		t.Errorf("the path is %+v", e.Path)
	}
}
