// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// stored is a policy as the informer keeps it: read, without its status, which the controller writes for each pod.
type stored struct {
	metav1.ObjectMeta // for its key
	policy            *clusterview.Policy
}

// store reads an object of the API server. Each is decoded by itself: an informer that decodes a list as a whole has none
// of its policies if one is malformed, as another version of the kind may have left it, and pods of all
// namespaces would wait.
func store(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // it has been stored before
	}
	in := placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Generation: object.GetGeneration(), CreationTimestamp: object.GetCreationTimestamp(),
	}}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &in.Spec)
	}
	s := &stored{ObjectMeta: in.ObjectMeta}
	if err == nil {
		s.policy = clusterview.ReadPolicy(&in)
		return s, nil
	}
	in.Spec = rankOf(spec)
	in.Spec.PodSelector = selectorOf(spec)
	s.policy = clusterview.UndecodablePolicy(&in, err)
	return s, nil
}

// rankOf is the mode and the priority of a spec of which something else cannot be decoded. One whose mode cannot be read
// overrides: what its pods say themselves must not let them go.
func rankOf(spec map[string]any) (rank placementv1alpha1.PlacementPolicySpec) {
	mode, found, err := unstructured.NestedString(spec, "mode")
	if rank.Mode = placementv1alpha1.Mode(mode); err != nil || len(spec) == 0 || found && rank.Mode != placementv1alpha1.ModeDefault {
		rank.Mode = placementv1alpha1.ModeOverride
	}
	if priority, _, err := unstructured.NestedInt64(spec, "priority"); err == nil {
		rank.Priority = int32(priority)
	}
	return rank
}

// selectorOf is the selector of a spec of which something else cannot be decoded. If it cannot be either, it is the empty
// one, which selects every pod of the namespace.
func selectorOf(spec map[string]any) (selector metav1.LabelSelector) {
	in, _, err := unstructured.NestedMap(spec, "podSelector")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(in, &selector) != nil {
		return metav1.LabelSelector{}
	}
	return selector
}
