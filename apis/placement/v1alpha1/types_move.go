// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Move replaces a pod of a Deployment that runs, without there ever being fewer ready pods than the Deployment wants; or, with evictFirst, has
// a pod evicted that no other one can be ready beside.
//
// The pod's controller reference is handed from its ReplicaSet to the Move. The ReplicaSet is one short then and makes another pod, while
// this one keeps its labels and its traffic. When the other is ready this one is evicted. If that takes too long, the reference
// is handed back, and the ReplicaSet removes the other one.
//
// The number of replicas is always 0: the disruption controller adds up what all controllers of the pods of a budget want, and a
// Move wants none.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:resource:scope=Namespaced,categories=espalier
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.spec.pod.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Move struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec MoveSpec `json:"spec,omitzero"`

	// status is what has come of it. Espalier's controller writes it.
	// +optional
	Status MoveStatus `json:"status,omitzero"`
}

// MoveSpec is what a move is to do.
//
// +kubebuilder:validation:XValidation:rule="has(self.keep) == (self.reason == 'Disconnect')",message="keep is for the reason Disconnect, which needs it"
// +kubebuilder:validation:XValidation:rule="has(self.replicaSet) != has(self.statefulSet)",message="a pod is of a replicaSet or of a statefulSet: name one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.statefulSet) || has(self.evictFirst) && self.evictFirst",message="a pod of a statefulSet needs evictFirst: another one would have its name"
// +kubebuilder:validation:XValidation:rule="!has(self.keep) || !has(self.evictFirst) || !self.evictFirst",message="with evictFirst there are no two pods of which keep could name one"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Move does not change: delete it, which gives it up, and make another one"
type MoveSpec struct {
	// pod is the one that is to be replaced.
	// +required
	Pod ObjectReference `json:"pod,omitzero"`

	// replicaSet is the one that it is of, if it is of one.
	// +optional
	ReplicaSet ObjectReference `json:"replicaSet,omitzero"` //nolint:kubeapilinter // omitzero leaves it out, without a pointer

	// statefulSet is the one that it is of, if it is of one. Such a pod is evicted first.
	// +optional
	StatefulSet ObjectReference `json:"statefulSet,omitzero"` //nolint:kubeapilinter // likewise

	// evictFirst is for a pod that no other one can be ready beside. The pod is evicted as its disruption budget allows it, when all others are
	// ready, and another one comes in its place. Nothing is handed over, and nothing can be undone.
	// +optional
	EvictFirst *bool `json:"evictFirst,omitempty"` //nolint:kubeapilinter // there is no third way

	// reason says why.
	// +required
	Reason MoveReason `json:"reason,omitempty"`

	// deadlineSeconds is how long the replacement may take until it is ready, from when the Move was made. After that the pod is handed back.
	// +optional
	// +default=600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// avoid is the domain that the replacement must not be in. If it lands there the pod is handed back. Without one, it may be anywhere. With
	// evictFirst nothing is handed back, wherever it lands.
	// +optional
	Avoid *Domain `json:"avoid,omitempty"`

	// keep is which of the pod and its replacement stays when the node of the pod answers again. It is for the reason Disconnect: the
	// pod is not evicted while its node does not answer, whatever the deadline.
	// +optional
	Keep Keep `json:"keep,omitempty"`

	// replicas is 0.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=0
	Replicas *int32 `json:"replicas,omitempty"`
}

// Owner is the ReplicaSet or the StatefulSet that the pod is of.
func (s *MoveSpec) Owner() ObjectReference {
	if s.StatefulSet.UID != "" {
		return s.StatefulSet
	}
	return s.ReplicaSet
}

// EvictsFirst reports that the pod is evicted before another one comes in its place.
func (s *MoveSpec) EvictsFirst() bool { return s.EvictFirst != nil && *s.EvictFirst }

// ObjectReference names an object of the Move's namespace.
type ObjectReference struct {
	// name is that of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is that of the object. Another one of the same name is not meant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// Domain is the nodes that have one value of a label.
type Domain struct {
	// topologyKey is the label. kubernetes.io/hostname stands for the name of a node that lacks it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey,omitempty"`

	// value is that of the label, empty for the nodes that lack it.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	Value *string `json:"value,omitempty"`
}

// MoveReason is why a pod is replaced.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Drain;Rebalance;Restart;Disconnect;Lease
type MoveReason string

// Why a pod is replaced.
const (
	// MoveDrain is for pods of a node that is about to be removed.
	MoveDrain MoveReason = "Drain"
	// MoveRebalance is for pods of a domain that has too many.
	MoveRebalance MoveReason = "Rebalance"
	// MoveRestart is for pods that keep failing where they are.
	MoveRestart MoveReason = "Restart"
	// MoveDisconnect is for pods of a node that does not answer.
	MoveDisconnect MoveReason = "Disconnect"
	// MoveLease is for pods whose lease is to be renewed, on a node that ends before the new one would.
	MoveLease MoveReason = "Lease"
)

// MoveStatus is how far a move is.
type MoveStatus struct {
	// phase is the step that is being done.
	// +optional
	Phase MovePhase `json:"phase,omitempty"` //nolint:kubeapilinter // a Move is at one step at a time, and each is written before what it says is done

	// message says what is waited for, or how it ended, in words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// endedAt is when the last step was done.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// replicas is 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=0
	Replicas *int32 `json:"replicas,omitempty"`
}

// MovePhase is a step of a move.
//
// +kubebuilder:validation:Enum=Planned;HandingOver;Replacing;Waiting;Evicting;Undoing;Done;Undone;Failed
type MovePhase string

// The steps of a move.
const (
	// MovePlanned: nothing has happened to the pod.
	MovePlanned MovePhase = "Planned"
	// MoveHandingOver: the pod's controller reference is being handed to the Move.
	MoveHandingOver MovePhase = "HandingOver"
	// MoveReplacing: the ReplicaSet is making another pod.
	MoveReplacing MovePhase = "Replacing"
	// MoveWaiting: the ReplicaSet has another pod, and this one is kept until its node answers.
	MoveWaiting MovePhase = "Waiting"
	// MoveEvicting: the other pod is ready, or is to come, and this one is being evicted.
	MoveEvicting MovePhase = "Evicting"
	// MoveUndoing: the pod is being handed back.
	MoveUndoing MovePhase = "Undoing"
	// MoveDone: the pod is gone.
	MoveDone MovePhase = "Done"
	// MoveUndone: the pod is its ReplicaSet's again, as if nothing had been.
	MoveUndone MovePhase = "Undone"
	// MoveFailed: the pod was not touched, or somebody else has taken it.
	MoveFailed MovePhase = "Failed"
)

// Ended reports that nothing more will be done.
func (p MovePhase) Ended() bool { return p == MoveDone || p == MoveUndone || p == MoveFailed }

// MoveList is a list of moves.
//
// +kubebuilder:object:root=true
type MoveList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Move `json:"items"`
}
