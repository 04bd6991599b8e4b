// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// installed are the objects that install the kinds of policies.
var installed = []string{"placementpolicies.placement.espalier.dev", "clusterplacementpolicies.placement.espalier.dev"}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installPolicies installs the kinds, and a policy that spreads all pods of the
// namespace over zones.
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

// waits waits until the pod is said to wait for the property of the profile's level.
func waits(t *testing.T, ns, name string) {
	t.Helper()
	until(t, "pod "+name+" to be refused", func() error {
		pod, err := cluster.client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "didn't have a property that the pod's placement requires") {
				return nil
			}
		}
		return fmt.Errorf("it is on node %q with %v", pod.Spec.NodeName, pod.Status.Conditions)
	})
}

// The scheduler runs without the kinds of policies, and has no policies then. It
// notices when they are installed, removed, and installed again, and every time
// takes up the pods for which that makes a difference: here the profile's default
// level leaves out all nodes, and the policy's leaves out none.
func TestPoliciesInstalledLater(t *testing.T) {
	const scheduler = "policies-later"
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
	waits(t, ns, "before")

	t.Cleanup(func() { removePolicies(t) })
	installPolicies(t, ns)
	settled(t, ns, scheduler, 1)
	pods(t, ns, scheduler, 6)
	even(t, settled(t, ns, scheduler, 7))

	removePolicies(t)
	asksNothing(t, ns, "after", scheduler)
	waits(t, ns, "after")
	installPolicies(t, ns)
	settled(t, ns, scheduler, 8)
	stop(t, p)
}
