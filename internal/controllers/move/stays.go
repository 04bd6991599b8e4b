// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/workload"
	"github.com/espalier-scheduler/espalier/pkg/placement/reconnect"
)

// replacementStays reports which of a pod that is back and its replacement stays. Without a replacement it is the pod; a pod that has come in
// the place of another one goes, if that may be back or is. So does a pod on a node that is about to be removed from where it would be replaced anyway.
func (r *Reconciler) replacementStays(ctx context.Context, o *objects) (bool, error) {
	now := r.Clock.Now()
	is, err := r.isReplacement(ctx, o)
	if err == nil && !is {
		is, err = r.leaves(ctx, o, now)
	}
	if is || err != nil || o.extra == nil {
		return is, err
	}
	original, replacement := candidate(o.pod, now), candidate(o.extra, now)
	if original.Misplaced, err = r.misplaced(ctx, o, o.pod); err != nil {
		return false, err
	}
	if replacement.Misplaced, err = r.misplaced(ctx, o, o.extra); err != nil {
		return false, err
	}
	return reconnect.Pick(reconnect.Strategy(o.move.Spec.Keep), original, replacement), nil
}

// leaves reports that the pod is on a node that is about to be removed, that it would be replaced for that, and that a replacement, if there is one with a
// node, is on none that is. A pod that asks to be left where it is does not leave.
func (r *Reconciler) leaves(ctx context.Context, o *objects, now time.Time) (bool, error) {
	if r.Drains == nil || clusterview.Leaving(o.node) == "" || clusterview.Spared(o.pod, now) != "" {
		return false, nil
	}
	if drains, err := r.Drains(ctx, o.pod, o.node); !drains || err != nil {
		return false, err
	}
	if o.extra == nil {
		return true, nil
	}
	node, err := nodeOf(ctx, r.API, o.extra)
	return node == nil || clusterview.Leaving(node) == "", err
}

// isReplacement reports that the pod has come since another one of its ReplicaSet was replaced that is not gone.
func (r *Reconciler) isReplacement(ctx context.Context, o *objects) (bool, error) {
	var moves placementv1alpha1.MoveList
	if err := r.Client.List(ctx, &moves, client.InNamespace(o.move.Namespace)); err != nil {
		return false, fmt.Errorf("listing Moves: %w", err)
	}
	return slices.ContainsFunc(moves.Items, func(m placementv1alpha1.Move) bool {
		gone := m.Status.Phase == placementv1alpha1.MoveDone || m.Status.Phase == placementv1alpha1.MoveFailed
		return m.UID != o.move.UID && m.Spec.Reason == placementv1alpha1.MoveDisconnect && m.Spec.Owner().UID == o.move.Spec.Owner().UID &&
			!gone && !o.pod.CreationTimestamp.Before(&m.CreationTimestamp)
	}), nil
}

// candidate is one of the two, but for where it is. Both are of the same revision: one of an older revision is not asked about.
// One that is not ready may be in a crash loop, and does not count as running.
func candidate(pod *corev1.Pod, now time.Time) reconnect.Candidate {
	return reconnect.Candidate{Running: readyFor(pod, 0, now), Started: startOf(pod)}
}

// startOf is when the first of a pod's containers that run was started, zero if none runs.
func startOf(pod *corev1.Pod) (start time.Time) {
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil && (start.IsZero() || running.StartedAt.Time.Before(start)) {
			start = running.StartedAt.Time
		}
	}
	return start
}

// misplaced returns how many pods are, by level, if one of the two stays and the other goes.
func (r *Reconciler) misplaced(ctx context.Context, o *objects, stays *corev1.Pod) ([]int64, error) {
	stays = stays.DeepCopy()
	replaceController(stays, *metav1.NewControllerRef(o.set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	pods := []*corev1.Pod{stays}
	for i := range o.pods {
		if p := &o.pods[i]; p.UID != o.extra.UID {
			pods = append(pods, p)
		}
	}
	w, spread := workload.Of(o.set, pods)
	if !spread {
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var beside corev1.PodList
	if err := r.Client.List(ctx, &beside, client.InNamespace(o.move.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	on := map[string][]*corev1.Pod{stays.Spec.NodeName: {stays}}
	for i := range beside.Items {
		if p := &beside.Items[i]; p.UID != o.pod.UID && p.UID != o.extra.UID {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
	}
	all := make([]*corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		all[i] = &nodes.Items[i]
	}
	return workload.MisplacedIn(w.Tree(all, on)), nil
}
