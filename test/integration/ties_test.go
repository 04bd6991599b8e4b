// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// lastOfZoneB is the node of that zone whose name comes last: without a reason no pod goes there first.
func lastOfZoneB(t *testing.T) string {
	t.Helper()
	nodes, err := cluster.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=zone-b"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes.Items[len(nodes.Items)-1].Name
}

// inZoneB makes a pod of an image for that zone, and returns its node.
func inZoneB(t *testing.T, ns, image string) string {
	t.Helper()
	pod, err := cluster.client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: corev1.PodSpec{
			SchedulerName: rig.SchedulerName, NodeSelector: map[string]string{corev1.LabelTopologyZone: "zone-b"},
			Containers: []corev1.Container{{Name: "c", Image: image}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to have a node", func() error {
		if pod, err = cluster.client.CoreV1().Pods(ns).Get(t.Context(), pod.Name, metav1.GetOptions{}); err == nil && pod.Spec.NodeName == "" {
			err = errors.New("it has none")
		}
		return err
	})
	return pod.Spec.NodeName
}

// Of nodes that nothing else tells apart a pod goes to the one that has its image, with hints and without. By name it is the last one.
func TestImagesBreakTies(t *testing.T) {
	const image = "registry.example.com/large:1"
	last := lastOfZoneB(t)
	has := func(ctx context.Context, images string) {
		patch := fmt.Appendf(nil, `{"status": {"images": %s}}`, images)
		if _, err := cluster.client.CoreV1().Nodes().Patch(ctx, last, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	has(t.Context(), fmt.Sprintf(`[{"names": [%q], "sizeBytes": %d}]`, image, 1<<30))
	t.Cleanup(func() { has(context.WithoutCancel(t.Context()), "null") })
	for _, mode := range []string{"Enabled", "Disabled"} {
		t.Run(mode, func(t *testing.T) {
			ns := namespace(t)
			p, _ := serve(t, withHints(t, mode))
			if node := inZoneB(t, ns, image); node != last {
				t.Errorf("the pod is on node %s, and its image on node %s", node, last)
			}
			stop(t, p)
			noPods(t, ns)
		})
	}
}

// A profile may prefer some nodes for all of its pods. That breaks ties as a preference of the pod's own does, and the scheduler says that it
// has no hints then.
func TestAddedPreferencesBreakTies(t *testing.T) {
	last := lastOfZoneB(t)
	added := fmt.Sprintf(`  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 1, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}}
`, last)
	ns := namespace(t)
	p, _ := serve(t, shippedBut(t, "  pluginConfig:\n", added))
	if node := inZoneB(t, ns, "busybox:1.37"); node != last {
		t.Errorf("the pod is on node %s, and node %s is preferred", node, last)
	}
	const want = "fast path disabled, every pod is filtered and scored on all nodes: its addedAffinity prefers some nodes"
	if log := p.Tail(1000); strings.Count(log, want) != 1 {
		t.Errorf("%q is not one line of its log:\n%s", want, log)
	}
	stop(t, p)
	noPods(t, ns)
}
