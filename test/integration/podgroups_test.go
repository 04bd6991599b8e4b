// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// startWithPodGroups starts the scheduler with the gate on and the role that docs/operations.md has bound to its account. The feature is off by
// default in Kubernetes: without a test that switches it on, nothing would show that a new release has changed it.
func startWithPodGroups(t *testing.T) {
	t.Helper()
	bindings := cluster.client.RbacV1().ClusterRoleBindings()
	_, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "espalier-scheduler-features"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-scheduler"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rig.SchedulerNamespace, Name: rig.SchedulerName}},
	}, metav1.CreateOptions{})
	fatal(t, err)
	t.Cleanup(func() {
		if err := bindings.Delete(context.WithoutCancel(t.Context()), "espalier-scheduler-features", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	start(t, "--kubeconfig="+cluster.account, "--leader-elect=false", "--secure-port=0", "--feature-gates=GenericWorkload=true")
}

// group makes a PodGroup.
func group(t *testing.T, ns, name string, policy schedulingv1beta1.PodGroupSchedulingPolicy) {
	t.Helper()
	_, err := cluster.client.SchedulingV1beta1().PodGroups(ns).Create(t.Context(), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: policy},
	}, metav1.CreateOptions{})
	fatal(t, err)
}

// members makes n pods of a group. Nothing but the group makes them a workload.
func members(t *testing.T, ns, group string, n int) {
	t.Helper()
	workload(t, ns, n, func(p *corev1.Pod) {
		p.Labels = map[string]string{"group": group}
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	})
}

// scheduled waits until n pods of a group have nodes, evenly, and the scheduler says of the group that it has placed it.
func scheduled(t *testing.T, ns, name string, n int) {
	t.Helper()
	even(t, observed(t, ns, "group="+name, n))
	until(t, "group "+name+" to be said to be scheduled", func() error {
		g, err := cluster.client.SchedulingV1beta1().PodGroups(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
			err = fmt.Errorf("its conditions are %v", g.Status.Conditions)
		}
		return err
	})
}

// A gang is placed when there is enough of it, as one, and its pods come out spread; so
// do those that join it later. A group without a number is placed as its pods come, and is one workload all the same.
func TestPodGroups(t *testing.T) {
	ns := namespace(t)
	startWithPodGroups(t)
	group(t, ns, "gang", schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 7}})
	members(t, ns, "gang", 6)
	// One that nobody waits for comes after them, and has its node before them.
	pods(t, ns, rig.SchedulerName, 1)
	settled(t, ns, rig.SchedulerName, 1)
	if o, err := observe(t, ns, "group=gang"); err != nil || o.Pending != 6 {
		t.Fatalf("of a gang of 7, of which there are 6, %d wait, %v", o.Pending, err)
	}
	members(t, ns, "gang", 1)
	scheduled(t, ns, "gang", 7)
	members(t, ns, "gang", 6)
	scheduled(t, ns, "gang", 13)

	group(t, ns, "basic", schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}})
	members(t, ns, "basic", 7)
	scheduled(t, ns, "basic", 7)
}
