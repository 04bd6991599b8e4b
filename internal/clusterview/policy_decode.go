// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// DecodePolicy reads a PlacementPolicy or ClusterPlacementPolicy as the API server gives it. One of another version of its kind may have
// what cannot be decoded: the pods that it selects are refused then, and no others.
func DecodePolicy(object *unstructured.Unstructured) *Policy {
	meta := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Generation: object.GetGeneration(), CreationTimestamp: object.GetCreationTimestamp(),
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if object.GetNamespace() == "" {
		return decodeClusterPolicy(meta, spec, err)
	}
	in := placementv1alpha1.PlacementPolicy{ObjectMeta: meta}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &in.Spec)
	}
	if err == nil {
		return ReadPolicy(&in)
	}
	in.Spec = whatCanBeDecoded(spec)
	return undecodablePolicy(&in, err)
}

// decodeClusterPolicy reads a policy of the cluster, with what came of the look for its spec.
func decodeClusterPolicy(meta metav1.ObjectMeta, spec map[string]any, err error) *Policy {
	in := placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: meta}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &in.Spec)
	}
	if err == nil {
		return ReadClusterPolicy(&in)
	}
	in.Spec.PlacementPolicySpec = whatCanBeDecoded(spec)
	namespaces, found := decodedSelector(spec, "namespaceSelector")
	in.Spec.NamespaceSelector = namespaces
	return undecodableClusterPolicy(&in, found, err)
}

// whatCanBeDecoded is what says which pods must wait for a policy that cannot be decoded as a whole.
func whatCanBeDecoded(spec map[string]any) placementv1alpha1.PlacementPolicySpec {
	out := rankOf(spec)
	out.PodSelector, _ = decodedSelector(spec, "podSelector")
	return out
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

// decodedSelector is a selector of a spec of which something else cannot be decoded. If it cannot be either, it is the empty
// one, which selects everything, and decoded is false.
func decodedSelector(spec map[string]any, field string) (selector metav1.LabelSelector, decoded bool) {
	in, found, err := unstructured.NestedMap(spec, field)
	if err != nil || !found || runtime.DefaultUnstructuredConverter.FromUnstructured(in, &selector) != nil {
		return metav1.LabelSelector{}, false
	}
	return selector, true
}
