// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// churnEvery is how often a node closes, another opens, and a pod is deleted.
	churnEvery = 50 * time.Millisecond
	// closedNodes is how many are closed at a time.
	closedNodes = 10
)

// churn closes and opens nodes in turn and deletes pods that have been bound until ctx
// ends, and then opens all nodes.
func (w *World) churn(ctx context.Context, bound <-chan string) (err error) {
	var closed []string
	defer func() {
		for _, name := range closed {
			// The next run must find them open.
			if openErr := w.cordon(context.WithoutCancel(ctx), name, false); openErr != nil && err == nil {
				err = openErr
			}
		}
	}()
	tick := time.NewTicker(churnEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		name := w.nodes[i%len(w.nodes)].Name
		closed = append(closed, name)
		if err := w.cordon(ctx, name, true); err != nil {
			return unlessEnded(ctx, err)
		}
		if len(closed) > min(closedNodes, len(w.nodes)/2) {
			if err := w.cordon(ctx, closed[0], false); err != nil {
				return unlessEnded(ctx, err)
			}
			closed = closed[1:]
		}
		select {
		case pod := <-bound:
			err := w.client.CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			if err != nil && !apierrors.IsNotFound(err) {
				return unlessEnded(ctx, fmt.Errorf("deleting pod %s/%s: %w", namespace, pod, err))
			}
		default:
		}
	}
}

func (w *World) cordon(ctx context.Context, node string, closed bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
	if _, err := w.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return nil
}

// unlessEnded is the error, but for one that comes of being terminated.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
