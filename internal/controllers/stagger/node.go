// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

// wasCordoned follows the time in the annotation of a node that somebody else had cordoned: when it is back it stays so.
const wasCordoned = " was-cordoned"

// outOfService reports whether a node was taken out of service for its end, and since when. A time that cannot be read is long ago.
func outOfService(n *corev1.Node) (since time.Time, is bool) {
	text, is := n.Annotations[clusterview.CordonedForEndAnnotation]
	since, _ = time.Parse(time.RFC3339, strings.TrimSuffix(text, wasCordoned))
	return since, is
}

// back has a node that runs by another boot be in service, without an end of the schedule. One that is seen for the first time runs since
// its object was made: who made it has just booted it.
func (c *Controller) back(n *corev1.Node, now time.Time) {
	if _, ok := clusterview.UpSince(n); ok {
		return
	}
	if !clusterview.Rebooted(n) {
		clusterview.SetUpSince(n, n.CreationTimestamp.Time)
		return
	}
	clusterview.SetUpSince(n, now)
	if clusterview.EndIsBy(n, clusterview.BySchedule) {
		clusterview.SetEnd(n, clusterview.BySchedule, time.Time{})
	}
	if text, is := n.Annotations[clusterview.CordonedForEndAnnotation]; is && !strings.HasSuffix(text, wasCordoned) {
		n.Spec.Unschedulable = false
	}
	delete(n.Annotations, clusterview.CordonedForEndAnnotation)
	delete(n.Annotations, clusterview.RebootDueAnnotation)
}

// give gives a node its end, and writes down since when it runs. An end that somebody else has given stays, unless the one of the
// schedule is earlier than that of a NodeClaim.
func (c *Controller) give(ctx context.Context, n *corev1.Node, is *stagger.Node, end, now time.Time) error {
	_, was := outOfService(n)
	if was {
		// First, so that it is said again if what follows fails.
		var err error
		if n, err = c.condition(ctx, n, corev1.ConditionFalse, "Rebooted", "The node runs by another boot."); err != nil {
			return err
		}
	}
	after := n.DeepCopy()
	c.back(after, now)
	_, has := after.Annotations[clusterview.ValidUntilAnnotation]
	byClaim := clusterview.EndIsBy(after, clusterview.ByNodeClaim) && end.Before(is.Latest)
	if !has || byClaim || clusterview.EndIsBy(after, clusterview.BySchedule) {
		clusterview.SetEnd(after, clusterview.BySchedule, end)
	}
	patched, err := c.patch(ctx, n, after)
	if patched && was {
		c.Events.Eventf(n, nil, corev1.EventTypeNormal, "NodeBack", "Serve", "The node runs by another boot, and takes pods again.")
	}
	return err
}

// end takes a node out of service: no pod comes, and those that are there are moved.
func (c *Controller) end(ctx context.Context, n *corev1.Node, now time.Time) error {
	after := n.DeepCopy()
	since := now.UTC().Format(time.RFC3339)
	if n.Spec.Unschedulable {
		since += wasCordoned
	}
	after.Spec.Unschedulable = true
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterview.CordonedForEndAnnotation, since)
	patched, err := c.patch(ctx, n, after)
	if patched || err != nil { // the answer may be all that was lost
		if c.begun == nil {
			c.begun = make(map[string]time.Time)
		}
		c.begun[n.Name] = now
	}
	if patched {
		c.Events.Eventf(n, nil, corev1.EventTypeNormal, "NodeEnded", "Cordon", "The node has reached its end, and is cordoned. Its pods are moved.")
	}
	return err
}

// leave says that a node waits for a reboot.
func (c *Controller) leave(ctx context.Context, n *corev1.Node, left int, now time.Time) error {
	why, message := "Drained", "The node has reached its end, and its pods were moved."
	if left > 0 {
		why, message = "DrainTimeout", fmt.Sprintf("The node has reached its end. Pods that could not be moved in %s: %d.", c.DrainFor, left)
	}
	n, err := c.condition(ctx, n, corev1.ConditionTrue, why, message)
	if err != nil {
		return err
	}
	after := n.DeepCopy()
	c.back(after, now)
	_, said := n.Annotations[clusterview.RebootDueAnnotation]
	if !said {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterview.RebootDueAnnotation, now.UTC().Format(time.RFC3339))
	}
	patched, err := c.patch(ctx, n, after)
	if patched && !said {
		c.Events.Eventf(n, nil, corev1.EventTypeNormal, "RebootDue", "Reboot", "%s It waits for a reboot.", message)
	}
	return err
}

// condition has a node have the condition RebootDue, and returns the node that has it. A condition is changed by its type, so that those
// of the kubelet are left alone.
func (c *Controller) condition(ctx context.Context, n *corev1.Node, status corev1.ConditionStatus, reason, message string) (*corev1.Node, error) {
	at := slices.IndexFunc(n.Status.Conditions, func(is corev1.NodeCondition) bool { return is.Type == clusterview.RebootDue })
	if at >= 0 && n.Status.Conditions[at].Status == status {
		return n, nil
	}
	after, now := n.DeepCopy(), metav1.NewTime(c.Clock.Now())
	is := corev1.NodeCondition{Type: clusterview.RebootDue, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	if at >= 0 {
		after.Status.Conditions[at] = is
	} else {
		after.Status.Conditions = append(after.Status.Conditions, is)
	}
	if err := c.Client.Status().Patch(ctx, after, client.StrategicMergeFrom(n)); err != nil {
		return nil, fmt.Errorf("changing the conditions of node %s: %w", n.Name, err)
	}
	return after, nil
}

// patch changes a node, and reports whether it did. It does not if the node has changed since it was read: then the next look does.
func (c *Controller) patch(ctx context.Context, n, after *corev1.Node) (bool, error) {
	if equality.Semantic.DeepEqual(n, after) {
		return false, nil
	}
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("changing node %s: %w", n.Name, err)
	}
	return true, nil
}
