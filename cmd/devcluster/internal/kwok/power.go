// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// A node is stopped by taking its lease away. kwok touches only nodes whose lease it
// holds, so from then on nothing is renewed and nothing happens to the node's pods,
// as when a machine has lost its power; and Kubernetes sees a lease that nobody renews.

// StoppedLabel marks the lease of a stopped node.
const StoppedLabel = Prefix + "stopped"

const (
	stoppedHolder       = "devcluster-stopped"
	stoppedLeaseSeconds = 1 << 30 // kwok takes a lease back when it runs out: in 34 years

	powerLimit = time.Minute
	// settlePeriod is many times what a watch event takes on one machine.
	settlePeriod = 500 * time.Millisecond
)

// Stopped reports whether the lease, which may be nil, is that of a stopped node.
func Stopped(lease *coordinationv1.Lease) bool {
	return lease != nil && lease.Labels[StoppedLabel] != ""
}

// StopNode lets node fall silent: the node lifecycle controller finds it not Ready
// when the grace period is over. With atOnce the node says good-bye, as at an orderly
// shutdown, and is not Ready when StopNode returns.
func (c *Control) StopNode(ctx context.Context, node string, atOnce bool) error {
	if _, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
		return c.explain(err)
	}
	holder, seconds := stoppedHolder, int32(stoppedLeaseSeconds)
	err := c.updateLease(ctx, node, func(lease *coordinationv1.Lease) {
		if lease.Labels == nil {
			lease.Labels = map[string]string{}
		}
		lease.Labels[StoppedLabel] = "true"
		// The last renewal: a lease that changed without one looks to the node
		// lifecycle controller as if it read a stale cache, and then it judges no node at all.
		now := metav1.NewMicroTime(time.Now())
		lease.Spec.RenewTime = &now
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, &seconds
	})
	if err != nil || !atOnce {
		return err
	}
	return c.sayGoodbye(ctx, node)
}

// sayGoodbye makes the node not Ready, and does it again if kwok, which may not have
// seen yet that it lost the lease, made it Ready once more.
func (c *Control) sayGoodbye(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, powerLimit)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, settlePeriod, true, func(ctx context.Context) (bool, error) {
		object, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, c.explain(err)
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, c.patchReady(ctx, node, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "NodeShutdown",
			Message:            "devcluster was told to stop the node",
			LastHeartbeatTime:  metav1.Now(),
			LastTransitionTime: metav1.Now(),
		})
	})
}

// StartNode brings a stopped node back and returns when it is Ready.
func (c *Control) StartNode(ctx context.Context, node string) error {
	if _, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
		return c.explain(err)
	}
	if err := c.giveLeaseBack(ctx, node); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, powerLimit)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, nudgePeriod, true, func(ctx context.Context) (bool, error) {
		object, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, c.explain(err)
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		stamp := time.Now().UTC().Format(time.RFC3339Nano)
		return false, annotateNode(ctx, c.kube, node, map[string]any{touchedAnnotation: stamp})
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("node %q did not become Ready within %s: is the control plane up?", node, powerLimit)
	}
	if err != nil {
		return err
	}
	return c.touchPods(ctx, node)
}

// giveLeaseBack puts the lease into the hands of the kwok that holds the other
// leases, which therefore need not wait for its next round. When there is no other
// lease to read its name from, the lease is deleted, and it makes a new one in a while.
func (c *Control) giveLeaseBack(ctx context.Context, node string) error {
	leases, err := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).
		List(ctx, metav1.ListOptions{LabelSelector: "!" + StoppedLabel, Limit: 1})
	if err != nil {
		return c.explain(err)
	}
	if len(leases.Items) == 0 {
		err := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, node, metav1.DeleteOptions{})
		return notFoundIsNil(err)
	}
	other := leases.Items[0].Spec
	return c.updateLease(ctx, node, func(lease *coordinationv1.Lease) {
		now := metav1.NewMicroTime(time.Now())
		delete(lease.Labels, StoppedLabel)
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = other.HolderIdentity, other.LeaseDurationSeconds
		lease.Spec.RenewTime = &now
	})
}

// lease returns the node's lease. That there is none is an error like any other.
func (c *Control) lease(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	return c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
}

func (c *Control) updateLease(ctx context.Context, node string, change func(*coordinationv1.Lease)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := c.lease(ctx, node)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("node %q has no lease: kwok has not taken it up, try again in a moment", node)
		}
		if err != nil {
			return err
		}
		change(lease)
		_, err = c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// patchReady sends the one condition: others write the rest of the status.
func (c *Control) patchReady(ctx context.Context, node string, condition corev1.NodeCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	_, err = c.kube.CoreV1().Nodes().PatchStatus(ctx, node, patch)
	return c.explain(err)
}
