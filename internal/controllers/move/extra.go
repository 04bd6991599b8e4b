// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// findExtra returns the pod that is marked for the Move, or else one that has come since and is marked for no other: the newest, since one
// that came in the same second may have come before. Of pods whose nodes do not answer many are moved at a time, each a while after
// the other, and the newest are the replacements of the later ones: there it is the oldest.
func (o *objects) findExtra() (extra *corev1.Pod) {
	oldest := o.move.Spec.Reason == placementv1alpha1.MoveDisconnect
	for i := range o.pods {
		p := &o.pods[i]
		by, marked := p.Annotations[clusterview.RemovedForMoveAnnotation]
		switch {
		case by == o.move.Name:
			return p
		case marked, string(p.UID) == o.move.Spec.Pod.UID, p.CreationTimestamp.Before(&o.move.CreationTimestamp):
		case extra == nil, oldest && p.CreationTimestamp.Before(&extra.CreationTimestamp), !oldest && extra.CreationTimestamp.Before(&p.CreationTimestamp):
			extra = p
		}
	}
	return extra
}

// readTurn looks whether a pod is marked as the one to go for another Move. A ReplicaSet that has one too many removes any of those that
// are marked. With two of them a Move would find the one that is its own gone, and no other in its place: its pod would go too.
func (o *objects) readTurn(ctx context.Context, api client.Reader) error {
	if o.move.Status.Phase != placementv1alpha1.MoveUndoing {
		return nil
	}
	for i := range o.pods {
		by := o.pods[i].Annotations[clusterview.RemovedForMoveAnnotation]
		if by == "" || by == o.move.Name {
			continue
		}
		var other placementv1alpha1.Move
		if err := api.Get(ctx, types.NamespacedName{Namespace: o.move.Namespace, Name: by}, &other); apierrors.IsNotFound(err) {
			continue // somebody has removed it with its finalizer: see sweep
		} else if err != nil {
			return fmt.Errorf("reading Move %s/%s: %w", o.move.Namespace, by, err)
		}
		o.othersTurn = o.othersTurn || !other.Status.Phase.Ended()
	}
	return nil
}
