// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// systemPod begins the name of a pod of the namespace kube-system on each node. Specs wait a minute for three such pods
// on each, by their names, and go on without them. One that has all names saves the minutes.
const systemPod = "kube-proxy-fluentd-elasticsearch-node-problem-detector-"

// runSystemPods puts a pod on each node as a DaemonSet's would be there: the scheduler binds it, and no preemption takes it away.
func runSystemPods(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		_, err := client.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: systemPod + node},
			Spec: corev1.PodSpec{
				PriorityClassName: "system-node-critical",
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
					}}},
				}}},
				Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("making a system pod on node %s: %w", node, err)
		}
	}
	return rig.Poll(ctx, time.Minute, 200*time.Millisecond, "the system pods", func() error {
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; strings.HasPrefix(p.Name, systemPod) && p.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
}

// offer lets pods have what nodes have, until the context ends. Specs add resources of their own to the capacity of nodes, and
// take them away; a kubelet offers such to pods within seconds, and played nodes have none that does.
func offer(ctx context.Context, client kubernetes.Interface) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			fmt.Fprintln(os.Stderr, "upstream: listing nodes:", err)
			return
		}
		for i := range nodes.Items {
			node := &nodes.Items[i]
			if equality.Semantic.DeepEqual(node.Status.Allocatable, node.Status.Capacity) {
				continue
			}
			node.Status.Allocatable = node.Status.Capacity
			// On a conflict, the next look is at the node as it is.
			if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "upstream: writing what node %s offers: %v\n", node.Name, err)
			}
		}
	}, 500*time.Millisecond)
}
