// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SpreadTreeArgs are the arguments of the plugin SpreadTree, which places the
// pods of a workload evenly over the levels they want.
type SpreadTreeArgs struct {
	metav1.TypeMeta

	// CountRevisions says which pods of the workload are counted in a domain.
	CountRevisions CountRevisions
	// NodeHint reports whether the tree proposes the node for a pod.
	NodeHint NodeHint
	// ScaleDown says what is left when some pods of a workload are removed.
	ScaleDown ScaleDown
	// DecisionRecord reports whether each pod is bound with how its node was chosen.
	DecisionRecord DecisionRecord
}

// CountRevisions says which pods of a workload are counted first.
type CountRevisions string

const (
	// CountNewest counts the pods of the revision being placed, and looks at the
	// other revisions only to break ties.
	CountNewest CountRevisions = "Newest"
	// CountAll counts the pods of all revisions alike.
	CountAll CountRevisions = "All"
)

// NodeHint reports whether a pod's node is proposed by the tree.
type NodeHint string

const (
	// NodeHintEnabled proposes the best node of the tree that fits, so that no other is looked at.
	NodeHintEnabled NodeHint = "Enabled"
	// NodeHintDisabled has every pod filtered and scored on all nodes.
	NodeHintDisabled NodeHint = "Disabled"
)

// ScaleDown says what is left when some pods of a workload are removed.
type ScaleDown string

const (
	// ScaleDownEven has what is left even.
	ScaleDownEven ScaleDown = "Even"
	// ScaleDownAny leaves it to the controller which pods it removes.
	ScaleDownAny ScaleDown = "Any"
)

// DecisionRecord reports whether it is written down how a pod's node was chosen.
type DecisionRecord string

const (
	// DecisionRecordEnabled has it written into an annotation of the pod, in the request that binds it.
	DecisionRecordEnabled DecisionRecord = "Enabled"
	// DecisionRecordDisabled writes nothing.
	DecisionRecordDisabled DecisionRecord = "Disabled"
)
