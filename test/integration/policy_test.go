// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// installed are the objects that install the kinds of policies.
var installed = []string{"placementpolicies.placement.espalier.dev", "clusterplacementpolicies.placement.espalier.dev"}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installPolicies installs the kinds, and a policy that spreads all pods of the namespace over zones.
func installPolicies(t *testing.T, ns string) {
	t.Helper()
	applier, err := rig.NewApplier(cluster.config)
	fatal(t, err)
	fatal(t, applier.Definitions(t.Context(), manifests.Files))
	policy := write(t, "policy.yaml", `apiVersion: placement.espalier.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: zones}
spec: {podSelector: {}, levels: [{topologyKey: topology.kubernetes.io/zone}]}
`)
	until(t, "a policy to be created", func() error {
		// A new one, that asks anew which kinds there are.
		applier, err := rig.NewApplier(cluster.config)
		if err != nil {
			return err
		}
		return applier.Apply(t.Context(), os.DirFS(filepath.Dir(policy)), "policy.yaml", ns)
	})
}

// removePolicies removes the kinds, and waits until they are gone.
func removePolicies(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.config)
	fatal(t, err)
	// Not the test's own context: this cleans up as well.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, definition := range installed {
		err = rig.Poll(ctx, timeout, 50*time.Millisecond, "the definition "+definition+" to be gone", func() error {
			err := client.Resource(definitions).Delete(ctx, definition, metav1.DeleteOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err == nil:
				return errors.New("it is being deleted")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// asksNothing makes one pod without a placement of its own.
func asksNothing(t *testing.T, ns, name, scheduler string) {
	t.Helper()
	_, err := cluster.client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"scheduler": scheduler}},
		Spec:       corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "c", Image: "busybox:1.37"}}},
	}, metav1.CreateOptions{})
	fatal(t, err)
}

// told waits until a pod is told a text that says why it has no node.
func told(t *testing.T, ns, name, text string) {
	t.Helper()
	until(t, fmt.Sprintf("pod %s to be told %q", name, text), func() error {
		pod, err := cluster.client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(pod.Status.Conditions, func(is corev1.PodCondition) bool {
			return is.Type == corev1.PodScheduled && strings.Contains(is.Message, text)
		}) {
			err = fmt.Errorf("it is on node %q with %v", pod.Spec.NodeName, pod.Status.Conditions)
		}
		return err
	})
}

// The scheduler runs without the kinds of policies, and has no policies then. It notices when they are installed, removed, and installed
// again, and every time takes up the pods for which that makes a difference: here the profile's default level leaves out all nodes, and the
// policy's leaves out none.
func TestPoliciesInstalledLater(t *testing.T) {
	const scheduler, lacks = "policies-later", "didn't have a property that the pod's placement requires" // that of the profile's level
	config := write(t, "config.yaml", configHead+`profiles:
- schedulerName: `+scheduler+`
  plugins: {multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree, weight: 10000}]}}
  pluginConfig:
  - name: Preferences
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: PreferencesArgs, defaultLevels: [{topologyKey: example.com/nowhere, nodesWithoutKey: Exclude}]}
`)
	ns := namespace(t)
	p := start(t, "--config="+config, "--kubeconfig="+cluster.account, "--leader-elect=false", "--secure-port=0")
	asksNothing(t, ns, "before", scheduler)
	told(t, ns, "before", lacks)

	t.Cleanup(func() { removePolicies(t) })
	installPolicies(t, ns)
	settled(t, ns, scheduler, 1)
	pods(t, ns, scheduler, 6)
	even(t, settled(t, ns, scheduler, 7))

	removePolicies(t)
	asksNothing(t, ns, "after", scheduler)
	told(t, ns, "after", lacks)
	installPolicies(t, ns)
	settled(t, ns, scheduler, 8)
	stop(t, p)
}

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
	rig.Since(t, cluster.client, rig.PodGroupsSince, "groups of pods of scheduling.k8s.io/v1beta1")
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
