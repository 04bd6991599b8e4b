// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SpreadTreeArgs are the arguments of the plugin SpreadTree, which places the
// pods of a workload evenly over the levels they want.
type SpreadTreeArgs struct {
	metav1.TypeMeta `json:",inline"`

	// countRevisions says which pods are counted in a domain. Newest counts those of
	// the revision being placed and looks at the rest of the workload only to
	// break ties: during a rolling update the old pods are leaving, and a spread
	// that counts them is lopsided once they are gone. All counts the pods of
	// every revision alike.
	// Default: Newest.
	CountRevisions CountRevisions `json:"countRevisions,omitempty"`

	// nodeHint reports whether the tree proposes the node for a pod. Enabled asks the
	// filters about the best node of the tree, then the next, and looks at no others
	// once one fits; pods that this cannot be right for are filtered and scored on
	// all nodes. Disabled does that with every pod, which costs much more and comes
	// to the same node.
	// Default: Enabled.
	NodeHint NodeHint `json:"nodeHint,omitempty"`

	// scaleDown says what is left when some pods of a workload are removed. Even has pods bound with a deletion cost, by which a
	// ReplicaSet removes the latest of each domain first, and places the pods of a StatefulSet by their index, of which it
	// removes the highest. Any leaves it to the controller. A policy may say otherwise for its pods. A pod that has a
	// deletion cost is left alone, with all of its owner.
	// Default: Even.
	ScaleDown ScaleDown `json:"scaleDown,omitempty"`

	// decisionRecord reports whether each pod is bound with how its node was chosen: at each level the pods in the domain that was
	// chosen and in the next best. Enabled writes this into the annotation espalier.dev/decision, in at most 512 bytes and in the
	// request that binds the pod. Disabled writes nothing.
	// Default: Enabled.
	DecisionRecord DecisionRecord `json:"decisionRecord,omitempty"`
}

// CountRevisions says which pods of a workload are counted first.
type CountRevisions string

const (
	// CountNewest counts the pods of the revision being placed.
	CountNewest CountRevisions = "Newest"
	// CountAll counts the pods of all revisions alike.
	CountAll CountRevisions = "All"
)

// NodeHint reports whether a pod's node is proposed by the tree.
type NodeHint string

const (
	// NodeHintEnabled proposes the best node of the tree that fits.
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
	// DecisionRecordEnabled writes it into an annotation of the pod.
	DecisionRecordEnabled DecisionRecord = "Enabled"
	// DecisionRecordDisabled writes nothing.
	DecisionRecordDisabled DecisionRecord = "Disabled"
)
