// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import corev1 "k8s.io/api/core/v1"

// The labels, annotations and taints of Espalier. This file owns their spelling.
const (
	// Prefix begins every label and annotation key of ours.
	Prefix = "espalier.dev/"

	// PlacementAnnotation on a pod lists its levels, first level first, in the
	// syntax of level.Parse.
	PlacementAnnotation = Prefix + "placement"

	// PlacedByAnnotation is what the scheduler writes into a pod that it binds: by what it was placed, see
	// Levels.PlacedBy.
	PlacedByAnnotation = Prefix + "placed-by"

	// DecisionAnnotation is what the scheduler writes into a pod that it binds: how its node was chosen, in the syntax of
	// decision.Parse.
	DecisionAnnotation = Prefix + "decision"

	// DeletionOrdinalAnnotation is what the scheduler writes into a pod beside its deletion cost: the number that implies it,
	// in the syntax of ordinal.Parse. A cost that is not implied was written by somebody else.
	DeletionOrdinalAnnotation = Prefix + "deletion-ordinal"

	// CostBeforeMoveAnnotation on a pod that is handed back to its ReplicaSet is the deletion cost that it had, "" for none.
	CostBeforeMoveAnnotation = Prefix + "cost-before-move"

	// RemovedForMoveAnnotation on a pod says for which Move it is to be removed: it has taken the place of a pod that is handed back.
	RemovedForMoveAnnotation = Prefix + "removed-for-move"

	// UnreachableSecondsAnnotation on a pod that is kept while its node does not answer is for how long it tolerated that before.
	UnreachableSecondsAnnotation = Prefix + "unreachable-seconds"

	// MadeEvictableAnnotation on a pod says that a Move has let Cluster Autoscaler evict it.
	MadeEvictableAnnotation = Prefix + "made-evictable"

	// DomainLimitsAnnotation on a pod bounds the pods of its revision in one domain,
	// in the syntax of limit.Parse.
	DomainLimitsAnnotation = Prefix + "domain-limits"

	// ConstraintsAnnotation on a pod lists conditions on its node, all of which
	// must hold, in the syntax of constraint.Parse.
	ConstraintsAnnotation = Prefix + "constraints"

	// PlatformsAnnotation on a pod lists what its images are built for, in the syntax
	// of platform.Parse.
	PlatformsAnnotation = Prefix + "platforms"

	// WorkloadLabel on a pod names its workload, in the pod's namespace: several
	// owners, or pods without one, as one workload.
	WorkloadLabel = Prefix + "workload"

	// LeaseAnnotation on a pod is for how long it wants to stay on its node, in the syntax of lifetime.ParseLease.
	LeaseAnnotation = Prefix + "lease"

	// LeaseExpiryAnnotation is what the scheduler writes into a pod that it binds, and the controller into one whose lease it renews: when
	// the lease ends, as a time of RFC 3339.
	LeaseExpiryAnnotation = Prefix + "lease-expiry"

	// RenewLeaseAnnotation on a pod says "true" where its lease is to be renewed. Whoever renews it takes it off.
	RenewLeaseAnnotation = Prefix + "renew-lease"

	// ValidUntilAnnotation on a node is when it ends, in the syntax of lifetime.ParseEnd.
	ValidUntilAnnotation = Prefix + "valid-until"

	// ValidUntilByAnnotation on a node is who has written its espalier.dev/valid-until, and what was written. Where that is another
	// time now, or this annotation is missing, somebody else has written it.
	ValidUntilByAnnotation = Prefix + "valid-until-by"

	// UpSinceAnnotation on a node is since when it runs, and by which boot.
	UpSinceAnnotation = Prefix + "up-since"

	// CordonedForEndAnnotation on a node says that it was cordoned because its end had come, and when.
	CordonedForEndAnnotation = Prefix + "cordoned-for-end"

	// RebootDueAnnotation on a node says since when it waits for a reboot: its end has come and its pods were replaced. The condition
	// RebootDue says the same.
	RebootDueAnnotation = Prefix + "reboot-due"

	// RebootDue is the type of a node's condition.
	RebootDue = Prefix + "RebootDue"

	// AllocationPriorityAnnotation on a pod is its priority among those of its allocation, a number from 0 to 100. It comes before that
	// of the assignment, and may be changed while the pod runs.
	AllocationPriorityAnnotation = Prefix + "allocation-priority"

	// IdentityGroupLabel on a pod names the identity group of its allocation that it is of.
	IdentityGroupLabel = Prefix + "identity-group"

	// IdentityAnnotation is what the scheduler writes into a pod of an identity group that it binds: its number.
	IdentityAnnotation = Prefix + "identity"

	// ReservedHostPortsAnnotation on a node lists the ports that the node itself
	// holds, in the syntax of hostport.Parse.
	ReservedHostPortsAnnotation = Prefix + "reserved-host-ports"

	// FailuresForgivenAnnotation on a node says up to when its failures are forgiven, as
	// a time of RFC 3339: an operator has fixed the node.
	FailuresForgivenAnnotation = Prefix + "failures-forgiven"

	// RefusedBinding is the cause in the API server's answer to a binding for which the node has no room, see the controller's
	// arbiter: nothing was written, and another node may have room.
	RefusedBinding = Prefix + "refused-binding"

	// AcknowledgesAnnotation on the Lease of an active replica names the holders of other Leases that it has seen, with commas
	// between them: it places nothing of what is theirs.
	AcknowledgesAnnotation = Prefix + "acknowledges"

	// SuspectTaint is on nodes on which several unrelated workloads fail. Its value is
	// the scheduler that put it there.
	SuspectTaint = Prefix + "suspect"
)

// SameAnnotation compares two states of a pod's annotation. An empty one is not the same
// as none: it is refused, and taking it away mends the pod.
func SameAnnotation(before, after *corev1.Pod, key string) bool {
	a, inA := before.Annotations[key]
	b, inB := after.Annotations[key]
	return inA == inB && a == b
}
