// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "placement.espalier.dev"

// The resources of the kinds in URLs and rights.
const (
	PlacementPolicyResource        = "placementpolicies"
	ClusterPlacementPolicyResource = "clusterplacementpolicies"
	MoveResource                   = "moves"
	PartitionResource              = "partitions"
	AllocationResource             = "allocations"
)

var (
	// SchemeGroupVersion is the group and version of the types in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what adds the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource names a resource of the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &PlacementPolicy{}, &PlacementPolicyList{}, &ClusterPlacementPolicy{}, &ClusterPlacementPolicyList{}, &Move{}, &MoveList{},
		&Partition{}, &PartitionList{}, &Allocation{}, &AllocationList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
