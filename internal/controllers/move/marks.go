// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// The costs of a pod that is handed back, and of the one that goes for it. They are not the outermost: Karpenter gives pods of nodes that it is about
// to remove the lowest one, and whose it is must be known. Karpenter counts a pod of the default priority whose cost is below -2^27 as none, and would take
// a node with nothing else for empty. The costs that the scheduler gives are not below -2^24.
const (
	keptCost = math.MaxInt32 - 1
	goneCost = -1 << 26
	// goneCostBefore is that of 0.1.0, which pods may have that it has marked.
	goneCostBefore = math.MinInt32 + 1
)

// setCost gives a pod another deletion cost, and keeps the one that it had before any Move.
func setCost(pod *corev1.Pod, cost int) {
	if _, kept := pod.Annotations[clusterview.CostBeforeMoveAnnotation]; !kept {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, clusterview.CostBeforeMoveAnnotation, pod.Annotations[corev1.PodDeletionCost])
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.PodDeletionCost, strconv.Itoa(cost))
}

// restore takes off a pod what was put on it to move it. A cost that somebody else has written since stays.
func restore(pod *corev1.Pod) {
	if before, there := pod.Annotations[clusterview.CostBeforeMoveAnnotation]; there {
		is := pod.Annotations[corev1.PodDeletionCost]
		ours := is == strconv.Itoa(keptCost) || is == strconv.Itoa(goneCost) || is == strconv.Itoa(goneCostBefore)
		switch {
		case ours && before != "":
			pod.Annotations[corev1.PodDeletionCost] = before
		case ours:
			delete(pod.Annotations, corev1.PodDeletionCost)
		}
	}
	delete(pod.Annotations, clusterview.CostBeforeMoveAnnotation)
	delete(pod.Annotations, clusterview.RemovedForMoveAnnotation)
	if _, made := pod.Annotations[clusterview.MadeEvictableAnnotation]; made {
		delete(pod.Annotations, safeToEvict)
		delete(pod.Annotations, clusterview.MadeEvictableAnnotation)
	}
}

// sweepEvery is the time between two looks for what Moves have left on pods.
const sweepEvery = time.Minute

// sweeping looks for that until the context ends.
func sweeping(r *Reconciler) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		utilwait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := r.sweep(ctx); err != nil {
				klog.FromContext(ctx).Error(err, "Looking for what Moves have left on pods")
			}
		}, sweepEvery)
		return nil
	})
}

// sweep takes off pods what Moves have put on them that are gone: somebody may have removed one together with its finalizer. A pod would be
// the first to go for ever, or the last.
func (r *Reconciler) sweep(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var marked []*corev1.Pod
	for i := range pods.Items {
		p := &pods.Items[i]
		_, costs := p.Annotations[clusterview.CostBeforeMoveAnnotation]
		_, evictable := p.Annotations[clusterview.MadeEvictableAnnotation]
		if p.DeletionTimestamp == nil && (costs || evictable) {
			marked = append(marked, p)
		}
	}
	if len(marked) == 0 {
		return nil
	}
	// After the pods: a Move is there before its marks are.
	var moves placementv1alpha1.MoveList
	if err := r.API.List(ctx, &moves); err != nil {
		return fmt.Errorf("listing Moves: %w", err)
	}
	busy, moved := sets.New[types.NamespacedName](), sets.New[string]()
	for i := range moves.Items {
		if m := &moves.Items[i]; !m.Status.Phase.Ended() {
			busy.Insert(client.ObjectKeyFromObject(m))
			moved.Insert(m.Spec.Pod.UID)
		}
	}
	var errs []error
	for _, p := range marked {
		if by := p.Annotations[clusterview.RemovedForMoveAnnotation]; moved.Has(string(p.UID)) || busy.Has(types.NamespacedName{Namespace: p.Namespace, Name: by}) {
			continue
		}
		is := &corev1.Pod{} // as it is, and whole
		found, err := get(ctx, r.API, is, p.Namespace, placementv1alpha1.ObjectReference{Name: p.Name, UID: string(p.UID)})
		if err == nil && found {
			err = ignoreConflict(r.patchPod(ctx, is, restore))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
