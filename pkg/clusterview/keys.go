// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

// The labels and annotations that Espalier reads. This file owns their spelling.
const (
	// Prefix begins every label and annotation key of ours.
	Prefix = "espalier.dev/"

	// PlacementAnnotation on a pod lists its levels, first level first, in the
	// syntax of level.Parse.
	PlacementAnnotation = Prefix + "placement"

	// DomainLimitsAnnotation on a pod bounds the pods of its workload on the nodes
	// that share a value of a property.
	DomainLimitsAnnotation = Prefix + "domain-limits"

	// WorkloadLabel on a pod names its workload, in the pod's namespace: several
	// owners, or pods without one, as one workload.
	WorkloadLabel = Prefix + "workload"
)
