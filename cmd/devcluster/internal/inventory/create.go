// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// creators is how many nodes are in the making at once.
const creators = 16

// Create makes the nodes and reports how many are made, from time to time. One that
// is there already is left as it is: on a kept folder it may carry changes somebody
// made on purpose.
func Create(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node, report func(made int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i, node := range nodes {
		report(i)
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %q: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Ready reports whether pods can be placed on the node as far as its health goes: it is
// Ready, and the taint every new node is born with has been taken off.
func Ready(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
