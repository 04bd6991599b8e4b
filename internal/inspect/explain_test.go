// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func TestExplainPending(t *testing.T) {
	c := newCluster(t, 2)
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
		must(t, err)
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

// Leases are judged by the time of the snapshot, however old it is, and by the deadlines of its Jobs.
func TestExplainLease(t *testing.T) {
	c := newCluster(t)
	c.Taken = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, end := range map[string]time.Duration{"short": 2 * time.Hour, "long": 48 * time.Hour} {
		c.Add(st.MakeNode().Name(name).UID(name).Annotation(clusterview.ValidUntilAnnotation, c.Taken.Add(end).Format(time.RFC3339)).
			Capacity(map[corev1.ResourceName]string{"cpu": "4", "pods": "10"}).Obj())
	}
	c.Add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(24 * 60 * 60))}})
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(ours)
	}
	c.Add(pod("hour").Annotation(clusterview.LeaseAnnotation, "1h").Obj())
	c.Add(pod("week").Annotation(clusterview.LeaseAnnotation, "168h").Obj())
	c.Add(pod("day").OwnerReference("job", batchv1.SchemeGroupVersion.WithKind("Job")).Obj())
	leases := strings.Replace(string(shipped(t)), "leases: Disabled", "leases: AnnotationsAndDeadlines", 1)
	opened, err := Open(t.Context(), &c.Snapshot, []byte(leases), AllNodes)
	must(t, err)
	for name, want := range map[string]string{"hour": "2, []", "day": "1, []", "week": "0, [{remove the annotation espalier.dev/lease 2}]"} {
		e, err := opened.Explain(t.Context(), "ns", name)
		if err != nil || e.Fits == nil {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		if got := fmt.Sprintf("%d, %v", *e.Fits, e.Helps); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// There is an answer for each node although the scheduler would draw a sample.
func TestExplainWithoutSamples(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 20)
	c.Add(st.MakePod().Namespace("ns").Name("choosy").UID("choosy").SchedulerName(ours).
		PodAffinityExists("app", corev1.LabelTopologyZone, st.PodAffinityWithPreferredReq).Obj())
	sampling := strings.Replace(string(shipped(t)), "      - name: Preferences\n", "      - name: Preferences\n      - name: NodeSampling\n", 1)
	opened, err := Open(t.Context(), &c.Snapshot, []byte(sampling), AllNodes)
	must(t, err)
	e, err := opened.Explain(t.Context(), "ns", "choosy")
	must(t, err)
	if e.Fits == nil || *e.Fits != 20 || len(e.Reasons) != 0 {
		t.Errorf("it fits on %v of %d nodes, and others refuse it: %v", e.Fits, e.Nodes, e.Reasons)
	}
}

// The way to a bound pod ends at its node.
func TestExplainBound(t *testing.T) {
	c := newCluster(t, 2, 2)
	c.deployment("web", template(), "a-1", "a-2", "b-2")
	e, err := c.open().Explain(t.Context(), "ns", "web-1-2")
	must(t, err)
	if len(e.Path) != 2 || e.Path[0].Chosen.Name != "b" || e.Path[1].Chosen.Name != "b-2" || e.Path[0].Others[0].Pods != 2 {
		t.Errorf("the path is %+v", e.Path)
	}
}
