// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/pkg/placement/reconnect"
)

// subject is what a pod is to the controller.
type subject struct {
	pod *corev1.Pod
	// rule is what its policy says, nil for a pod that is left to Kubernetes.
	rule *rule
	// named says that no other pod can take its place, because it would have the same name.
	named bool
	// set and deployment are what it is of, nil where no Move can be made for it, or has been.
	set        *appsv1.ReplicaSet
	deployment *appsv1.Deployment
}

// subject returns what a pod is. Pods of Deployments are left to Kubernetes if they are of an older revision, which is about to go, or if
// there may be no pod too many for a moment: nobody knows whether the one on the silent node still runs.
func (c *Controller) subject(ctx context.Context, pod *corev1.Pod, r *rule) (*subject, error) {
	is, owner := &subject{pod: pod}, metav1.GetControllerOfNoCopy(pod)
	if r == nil || owner == nil {
		return is, nil
	}
	switch owner.Kind {
	case move.Kind:
		var m placementv1alpha1.Move
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &m); err != nil {
			return is, client.IgnoreNotFound(err)
		}
		if m.Spec.Reason == placementv1alpha1.MoveDisconnect {
			is.rule = r
		}
	case "StatefulSet":
		is.rule, is.named = r, true
	case "ReplicaSet":
		set, deployment, ok, err := move.Owners(ctx, c.Client, pod)
		if ok && move.Revision(set) == move.Revision(deployment) && move.Surge(deployment) > 0 {
			is.rule, is.set, is.deployment = r, set, deployment
		}
		return is, err
	}
	return is, nil
}

// unmoved is how long a Move may take to be made and begun.
const unmoved = time.Minute

// keptWithoutMove is how long a pod of a Deployment is kept that no Move has taken: for as long as it tolerates by itself that its node does
// not answer. There may be too many, or its Deployment is at work for long; then it must be no worse off than without a policy.
func (s *subject) keptWithoutMove() time.Duration {
	own := time.Duration(min(ownSeconds(s.pod), int64(s.rule.lostAfter/time.Second))) * time.Second
	return max(own, s.rule.replaceAfter+unmoved)
}

// state is the pod as the classification sees it, on a node that does not answer since a time. A pod is unknown from when it stays.
func (s *subject) state(since time.Time) reconnect.Pod {
	is := reconnect.Pod{LostAfter: s.rule.lostAfter, NotReplaced: s.named, Node: reconnect.Silent, Status: reconnect.Running}
	switch {
	case stays(s.pod):
		is.Status, is.UnknownSince = reconnect.Unknown, since
		if !kept(s.pod) {
			is.LostAfter = 0 // it always tolerates it, and is never lost
		}
	case s.pod.Status.Phase != corev1.PodRunning:
		is.Status = reconnect.Pending
	}
	return is
}
