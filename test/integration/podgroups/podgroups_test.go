// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

const namespace = "default"

// start starts the scheduler with the gate on, and ends it with the test.
func start(t *testing.T) {
	t.Helper()
	p, err := rig.StartScheduler(rig.SchedulerOptions{Binary: cluster.binary, Kubeconfig: cluster.account, Dir: t.TempDir(), Args: []string{gates}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Unasked(); err != nil {
			t.Error(err)
		}
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the scheduler's log:\n%s", p.Tail(20))
		}
	})
}

// group makes a PodGroup.
func group(t *testing.T, name string, policy schedulingv1beta1.PodGroupSchedulingPolicy) {
	t.Helper()
	_, err := cluster.client.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: policy},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// pods makes n pods that are to be spread over zones, of a group unless it is "". Nothing but
// the group makes them a workload.
func pods(t *testing.T, group string, n int) {
	t.Helper()
	for range n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "pod-", Labels: map[string]string{"group": group},
				Annotations: map[string]string{"espalier.dev/placement": "spread=" + corev1.LabelTopologyZone},
			},
			Spec: corev1.PodSpec{SchedulerName: rig.SchedulerName, Containers: []corev1.Container{{Name: "c", Image: "busybox:1.37"}}},
		}
		if group != "" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		}
		if _, err := cluster.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// observe tells where the pods of a group are.
func observe(t *testing.T, group string) (*rig.Observation, error) {
	t.Helper()
	return rig.Observe(t.Context(), cluster.client, rig.Workload{
		Namespace: namespace, Selector: "group=" + group, Levels: []evenness.Level{{Name: corev1.LabelTopologyZone}},
	})
}

// settled waits until n pods of a group have nodes, and wants them to be as even as they can be.
func settled(t *testing.T, group string, n int) {
	t.Helper()
	var o *rig.Observation
	until(t, fmt.Sprintf("%d pods of group %q to have nodes", n, group), func() (err error) {
		if o, err = observe(t, group); err == nil && (len(o.Pods) != n || o.Pending > 0) {
			err = fmt.Errorf("there are %d, %d of them pending", len(o.Pods), o.Pending)
		}
		return err
	})
	if findings := o.Check(); len(findings) > 0 {
		t.Errorf("group %q is not as even as it can be: %s\n%s", group, strings.Join(findings, "; "), o.Draw())
	}
}

// scheduled waits until the scheduler says of the group that it has placed it.
func scheduled(t *testing.T, name string) {
	t.Helper()
	until(t, "group "+name+" to be said to be scheduled", func() error {
		g, err := cluster.client.SchedulingV1beta1().PodGroups(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
			err = fmt.Errorf("its conditions are %v", g.Status.Conditions)
		}
		return err
	})
}

func until(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := rig.Poll(t.Context(), timeout, 50*time.Millisecond, what, check); err != nil {
		t.Fatal(err)
	}
}

// A gang is placed when there is enough of it, as one, and its pods come out spread; so
// do those that join it later.
func TestGang(t *testing.T) {
	start(t)
	group(t, "gang", schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 7}})
	pods(t, "gang", 6)
	// One that nobody waits for comes after them, and has its node before them.
	pods(t, "", 1)
	settled(t, "", 1)
	if o, err := observe(t, "gang"); err != nil || o.Pending != 6 {
		t.Fatalf("of a gang of 7, of which there are 6, %d wait, %v", o.Pending, err)
	}
	pods(t, "gang", 1)
	settled(t, "gang", 7)
	scheduled(t, "gang")
	pods(t, "gang", 6)
	settled(t, "gang", 13)
}

// A group without a number is placed as its pods come, and is one workload all the same.
func TestBasicGroup(t *testing.T) {
	start(t)
	group(t, "basic", schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}})
	pods(t, "basic", 7)
	settled(t, "basic", 7)
	scheduled(t, "basic")
}
