// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

func nodeIn(name string, phase corev1.NodePhase, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Status: corev1.NodeStatus{Phase: phase}}
}

func TestOnlyNodesThatStayTakenUpAreUnstarted(t *testing.T) {
	first, versions := unstarted([]*corev1.Node{nodeIn("stays", takenUp, "1"), nodeIn("starts", takenUp, "2"), nodeIn("changes", takenUp, "3")}, nil)
	if len(first) != 0 {
		t.Errorf("%v are unstarted at the first look: kwok has had no time", first)
	}
	second, _ := unstarted([]*corev1.Node{
		nodeIn("stays", takenUp, "1"), nodeIn("starts", corev1.NodeRunning, "4"), nodeIn("changes", takenUp, "5"), nodeIn("new", "", "6"),
	}, versions)
	if want := []string{"stays"}; !slices.Equal(second, want) {
		t.Errorf("%v are unstarted, want %v", second, want)
	}
}

func TestAnUnstartedNodeIsTouched(t *testing.T) {
	client := fake.NewClientset(nodeIn("n", takenUp, "1"), nodeIn("runs", corev1.NodeRunning, "2"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Wake(ctx, client) }()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, settleLimit, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		return err == nil && node.Annotations[touchedAnnotation] != "", err
	})
	if err != nil {
		t.Errorf("node n was not touched: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Wake ended with %v", err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "runs", metav1.GetOptions{})
	if err != nil || len(node.Annotations) != 0 {
		t.Errorf("a node that runs has annotations %v, %v", node.Annotations, err)
	}
}
