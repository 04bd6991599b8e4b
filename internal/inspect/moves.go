// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Move is a pod that is being replaced, or was.
type Move struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Pod       string `json:"pod"`
	// ReplicaSet or StatefulSet is what the pod is of; the other one is "".
	ReplicaSet  string                       `json:"replicaSet,omitempty"`
	StatefulSet string                       `json:"statefulSet,omitempty"`
	Reason      placementv1alpha1.MoveReason `json:"reason"`
	Phase       placementv1alpha1.MovePhase  `json:"phase"`
	// Message says what is waited for, or how it ended.
	Message string      `json:"message,omitempty"`
	Created metav1.Time `json:"created"`
	// Ended is nil for one that goes on.
	Ended *metav1.Time `json:"ended,omitempty"`
}

// ReadMoves reads the Moves of a namespace, or of all if it is "". Those that go on come first, and the latest before earlier ones.
func ReadMoves(ctx context.Context, api client.Reader, namespace string) ([]Move, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(placementv1alpha1.SchemeGroupVersion.WithKind("MoveList"))
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the CRD of Moves is not installed: apply manifests/crds, if you want pods replaced: %w", err)
		}
		return nil, fmt.Errorf("listing Moves: %w", err)
	}
	all := []Move{}
	for i := range list.Items {
		var m placementv1alpha1.Move
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &m); err != nil {
			return nil, fmt.Errorf("move %s/%s: %w", list.Items[i].GetNamespace(), list.Items[i].GetName(), err)
		}
		all = append(all, Move{
			m.Namespace, m.Name, m.Spec.Pod.Name, m.Spec.ReplicaSet.Name, m.Spec.StatefulSet.Name, m.Spec.Reason, cmp.Or(m.Status.Phase, placementv1alpha1.MovePlanned), m.Status.Message,
			m.CreationTimestamp, m.Status.EndedAt,
		})
	}
	slices.SortStableFunc(all, func(a, b Move) int {
		switch {
		case (a.Ended == nil) == (b.Ended == nil):
			return b.Created.Compare(a.Created.Time)
		case a.Ended == nil:
			return -1
		default:
			return 1
		}
	})
	return all, nil
}
