// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlacementPolicy says how the pods that it selects, in its own namespace, are placed.
//
// What a pod says itself comes before it, unless its mode is Override. Of two policies that select the same pod one that overrides
// governs it; then that of the higher priority; then the older one; and of two of the same age the one whose name is first
// in byte order. A change takes effect for the next pod that is placed; pods that
// run already stay where they are.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=plp,categories=espalier
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Governed",type=integer,JSONPath=`.status.governedPods`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selectedPods`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Conflicted",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec PlacementPolicySpec `json:"spec,omitzero"`

	// status is what has come of it. Espalier's controller writes it; schedulers never read it.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitzero"`
}

// PlacementPolicySpec is what a policy wants.
//
// +kubebuilder:validation:XValidation:rule="has(self.levels) || has(self.domainLimits) || has(self.faults) || has(self.scaleDown) || has(self.disconnect) || has(self.moves)",message="a policy says something: give levels, domainLimits, faults, scaleDown, disconnect or moves"
type PlacementPolicySpec struct {
	// priority ranks the policies of a mode that select the same pod: the highest governs it.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// mode says whose word counts. With Default the pod's does: its annotations and its topology spread constraints come before the policy.
	// With Override the policy's does.
	// +optional
	// +default="Default"
	Mode Mode `json:"mode,omitempty"`

	// podSelector selects pods of the policy's namespaces. An empty selector selects all of them.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="operators are In and NotIn with values, and Exists and DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label's value has 63 characters at most, and its key 317: no pod has a longer one"
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// levels are the levels over which the pods are placed, in decreasing order of precedence. They
	// take the place of the profile's default levels and, with mode Override, of the pod's ScheduleAnyway topology spread constraints and
	// its annotation espalier.dev/placement. Without any, those hold. Pods of a DaemonSet are not placed by them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.topologyKey == b.topologyKey))",message="name each key once: a second level over it could never decide anything"
	Levels []Level `json:"levels,omitempty"`

	// domainLimits bound the pods of one revision of a workload that share a value of a node label. They
	// take the place of the profile's default limits. They do not hold for pods with an annotation
	// espalier.dev/domain-limits, whatever it limits, unless mode is Override; nor for those of a DaemonSet.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	DomainLimits []DomainLimit `json:"domainLimits,omitempty"`

	// faults says when a node counts as faulty for the pods. What it leaves open is as the profile says. A
	// policy with nothing else governs its pods as any other does.
	// +optional
	Faults *Faults `json:"faults,omitempty"`

	// scaleDown says what is left when some of the pods are removed. Even has them bound with a deletion cost, by which a ReplicaSet
	// removes the latest of each domain first, and places pods of a StatefulSet by their index. Any leaves it to the controller which
	// pods it removes. Without it, the scheduler's profile says so.
	// +optional
	ScaleDown ScaleDown `json:"scaleDown,omitempty"`

	// disconnect says what becomes of pods of Deployments and StatefulSets on a node that does not answer, which has the taint
	// node.kubernetes.io/unreachable with the effect NoExecute. Espalier's controller does it, if it runs with --keep-disconnected. Without
	// it, Kubernetes deletes the pods when they tolerate the taint no more, after five minutes unless a pod says otherwise.
	// +optional
	Disconnect *Disconnect `json:"disconnect,omitempty"`

	// moves says for which reasons running pods of Deployments are replaced by others. Espalier's controller does it, for each reason for
	// which it runs with the flag, and within the bounds of its flags. What moves leaves open is as the flag says.
	// +optional
	Moves *Moves `json:"moves,omitempty"`
}

// ScaleDown is what is left when some pods of a workload are removed.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Even;Any
type ScaleDown string

// What is left when some pods are removed.
const (
	ScaleDownEven ScaleDown = "Even"
	ScaleDownAny  ScaleDown = "Any"
)

// Mode is whose word counts where a pod and a policy say something of the same.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Default;Override
type Mode string

// The modes.
const (
	ModeDefault  Mode = "Default"
	ModeOverride Mode = "Override"
)

// TopologyKey is the key of a node label, as in topology spread constraints. Docker's names for what a node has, such as
// node.name, are for the annotation alone: kubernetes.io/hostname is each node by itself.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && (self.contains('/') ? self.indexOf('/') <= 253 && !self.matches('^(?i:node|engine)[.](?i:labels)[.]') : !self.matches('^(?i:node|engine)[.]'))",message="use the key of a node label, such as topology.kubernetes.io/zone or kubernetes.io/hostname"
type TopologyKey string

// Level is one placement preference.
//
// +kubebuilder:validation:XValidation:rule="self.strategy == 'Spread' || !has(self.shares) && !has(self.unlistedShare) && !has(self.nodesWithoutKeyShare)",message="only a level that spreads has shares"
// +kubebuilder:validation:XValidation:rule="!has(self.share) || self.strategy == 'Spread' && !has(self.shares) && !has(self.unlistedShare) && !has(self.nodesWithoutKeyShare)",message="share is for a level that spreads, and not beside shares"
// +kubebuilder:validation:XValidation:rule="!has(self.nodesWithoutKeyShare) || self.nodesWithoutKey == 'OwnDomain'",message="nodes without the label have a share of their own with nodesWithoutKey: OwnDomain alone"
type Level struct {
	// strategy is Spread, which gives the next pod to the domain with the fewest pods, or Pack, which gives it
	// to the fullest domain that still has capacity.
	// +optional
	// +default="Spread"
	Strategy Strategy `json:"strategy,omitempty"`

	// topologyKey is the key of the node label whose values are the domains.
	// +required
	TopologyKey TopologyKey `json:"topologyKey,omitempty"`

	// nodesWithoutKey is what becomes of nodes without the label. LastResort puts pods on them only
	// where no other node is as healthy and fits. OwnDomain puts them together in one domain with an equal share. Exclude
	// keeps the pods off them, even if there is capacity nowhere else.
	// +optional
	// +default="LastResort"
	NodesWithoutKey NodesWithoutKey `json:"nodesWithoutKey,omitempty"`

	// share is Allocatable where each value is to get pods in proportion to what the nodes that have it have of
	// CPU, whether a pod fits on them or not.
	// +optional
	Share Share `json:"share,omitempty"`

	// shares gives shares to values.
	// +optional
	// +listType=map
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=254
	Shares []ValueShare `json:"shares,omitempty"`

	// unlistedShare is the share of all values together that shares does not list. Without it, each of them has a share of 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	UnlistedShare *int64 `json:"unlistedShare,omitempty"`

	// nodesWithoutKeyShare is the share of the nodes without the label, where they are OwnDomain. Without it, it is 1, or part of
	// unlistedShare.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	NodesWithoutKeyShare *int64 `json:"nodesWithoutKeyShare,omitempty"`
}

// Strategy is what a level does with its domains.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Spread;Pack
type Strategy string

// The strategies.
const (
	StrategySpread Strategy = "Spread"
	StrategyPack   Strategy = "Pack"
)

// NodesWithoutKey is what a level does with nodes without its label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=LastResort;OwnDomain;Exclude
type NodesWithoutKey string

// What may be done with nodes without a label.
const (
	NodesWithoutKeyLastResort NodesWithoutKey = "LastResort"
	NodesWithoutKeyOwnDomain  NodesWithoutKey = "OwnDomain"
	NodesWithoutKeyExclude    NodesWithoutKey = "Exclude"
)

// Share is where the shares of a level's values come from.
//
// +kubebuilder:validation:Enum=Allocatable
// +kubebuilder:validation:MinLength=1
type Share string

// ShareAllocatable makes the share of a value what the nodes that have it have of CPU.
const ShareAllocatable Share = "Allocatable"

// ValueShare is the share of one value.
type ValueShare struct {
	// value is the label's value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Value string `json:"value,omitempty"`

	// share is how much of the pods the value gets, beside the shares of the other values.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Share int64 `json:"share,omitempty"`
}

// DomainLimit bounds the pods of one revision of a workload on nodes that share a value of a label.
type DomainLimit struct {
	// topologyKey is the key of the node label.
	// +required
	TopologyKey TopologyKey `json:"topologyKey,omitempty"`

	// maxPods is how many of the pods there may be on all nodes of one value.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxPods int64 `json:"maxPods,omitempty"`
}

// Faults says when a node counts as faulty for a workload.
//
// +kubebuilder:validation:MinProperties=1
type Faults struct {
	// threshold is how many failures within the window make a node faulty.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Threshold *int32 `json:"threshold,omitempty"`

	// windowSeconds is how long a failure is remembered, up to a day.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// PlacementPolicyStatus is what has come of a policy.
type PlacementPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selectedPods is how many pods the selector selects: those that one of Espalier's schedulers
	// places or has placed, and that have not completed and are not terminating. Pods of a DaemonSet are
	// not among them: their controller chooses their nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SelectedPods *int32 `json:"selectedPods,omitempty"`

	// governedPods is how many of them are placed by what this policy says, in whole or in part. Pods that are bound count for
	// the policy whose levels they were placed over, which their annotation espalier.dev/placed-by names.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GovernedPods *int32 `json:"governedPods,omitempty"`

	// conditions are Ready, Accepted and Conflicted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Types of conditions.
const (
	// ConditionAccepted is True if the spec can be read, and has a say: the first 100 policies of a namespace have, and the first 100 of
	// the cluster. The pods of one that cannot be read stay Pending.
	ConditionAccepted = "Accepted"
	// ConditionConflicted is True if another policy selects some of the same pods.
	ConditionConflicted = "Conflicted"
	// ConditionReady is True if the policy is accepted, and some of the pods that it selects, if there are any, are placed by it. It is the
	// summary of the others. It is False for a policy of which the controller does nothing, because its flags say so.
	ConditionReady = "Ready"
)

// Reasons of conditions.
const (
	ReasonValid        = "Valid"
	ReasonInvalid      = "Invalid"
	ReasonTooMany      = "TooMany"
	ReasonNoConflict   = "NoConflict"
	ReasonPolicyBefore = "PolicyBefore"
	ReasonPolicyAfter  = "PolicyAfter"
	ReasonInForce      = "InForce"
	ReasonOverruled    = "Overruled"
	ReasonNotAccepted  = "NotAccepted"
	ReasonNotEnabled   = "NotEnabled"
)

// PlacementPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementPolicy `json:"items"`
}
