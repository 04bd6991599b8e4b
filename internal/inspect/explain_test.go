// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
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
	two := pod("two").Req(nil).Req(map[corev1.ResourceName]string{"cpu": "6"}).Obj()
	two.Spec.Containers = append([]corev1.Container{{Name: "first"}}, two.Spec.Containers...)
	c.Add(two)
	c.Add(pod("gated").SchedulingGates([]string{"example.com/quota"}).Obj())
	c.Add(st.MakeNode().Name("b-1").UID("b-1").Label("team", "other").Capacity(map[corev1.ResourceName]string{"cpu": "64", "pods": "10"}).Unschedulable(true).Obj())
	c.Add(pod("ended").Phase(corev1.PodFailed).Obj())
	c.Add(pod("leaving").Terminating().Obj())
	opened := c.open()
	for name, want := range map[string]string{
		"large":    "0 of 3, [Insufficient cpu node(s) were unschedulable], [{request 4 of cpu in place of 5 2}]",
		"choosy":   "0 of 3, [node(s) didn't match Pod's node affinity/selector node(s) were unschedulable], [{remove disk=ssd from nodeSelector 2}]",
		"fine":     "2 of 3, [node(s) were unschedulable], []",
		"hopeless": "0 of 3, [Insufficient cpu node(s) were unschedulable], []",
		"foreign":  "not asked of 3, [], []",
		"ended":    "not asked of 3, [], []",
		"leaving":  "not asked of 3, [], []",
		"two":      "0 of 3, [Insufficient cpu node(s) were unschedulable], [{request 4 of cpu in place of 6 2}]",
		"gated":    "not asked of 3, [], []",
	} {
		e, err := opened.Explain(t.Context(), "ns", name)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, r := range e.Reasons {
			reasons = append(reasons, r.Reason)
		}
		fits := "not asked"
		if e.Fits != nil {
			fits = fmt.Sprint(*e.Fits)
		}
		if got := fmt.Sprintf("%s of %d, %v, %v", fits, e.Nodes, reasons, e.Helps); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if e, err := opened.Explain(t.Context(), "ns", "gated"); err != nil || !strings.Contains(e.Note, "example.com/quota") {
		t.Errorf("of a gated pod: %+v, %v", e, err)
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
