// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Moves says for which reasons running pods of Deployments are replaced by others.
//
// +kubebuilder:validation:MinProperties=1
type Moves struct {
	// drained is which pods are replaced before they are evicted from a node that is about to be removed: Blocked those that a disruption
	// budget keeps there, All all of them, None none. Pods that no other one can be ready beside, such as those of StatefulSets, are evicted
	// first with All. It needs the controller's flag --move-drained.
	// +optional
	Drained DrainedPods `json:"drained,omitempty"`

	// rebalance is Enabled if pods that are misplaced are replaced until what is there is even, and Disabled if they are left where they
	// are. It needs the controller's flag --rebalance.
	// +optional
	Rebalance MovesMode `json:"rebalance,omitempty"`

	// restart is Enabled if pods that keep failing on a node that is faulty for them are replaced on another one, and Disabled if they are
	// left to their kubelet. Pods that no other one can be ready beside are evicted first. It needs the controller's flag --restart-elsewhere.
	// +optional
	Restart MovesMode `json:"restart,omitempty"`
}

// DrainedPods are the pods that are replaced before they are evicted from a node that is about to be removed.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=None;Blocked;All
type DrainedPods string

// The pods that may be replaced.
const (
	DrainedNone DrainedPods = "None"
	// DrainedBlocked are those that a disruption budget keeps from being evicted.
	DrainedBlocked DrainedPods = "Blocked"
	DrainedAll     DrainedPods = "All"
)

// MovesMode says whether pods are replaced for a reason.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Enabled;Disabled
type MovesMode string

// Whether pods are replaced.
const (
	MovesEnabled  MovesMode = "Enabled"
	MovesDisabled MovesMode = "Disabled"
)

// Disconnect says what becomes of pods on a node that does not answer. Times are counted from when the node got its taint.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="self.replaceAfterSeconds < self.lostAfterSeconds",message="a pod is replaced before it is lost: give a lower replaceAfterSeconds, or a higher lostAfterSeconds"
type Disconnect struct {
	// replaceAfterSeconds is how long a pod of a Deployment is waited for until another one is made in its place. It is kept all the same.
	// +optional
	// +default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	ReplaceAfterSeconds *int32 `json:"replaceAfterSeconds,omitempty"`

	// lostAfterSeconds is how long a pod is kept. After that Kubernetes deletes it.
	// +optional
	// +default=3600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	LostAfterSeconds int32 `json:"lostAfterSeconds,omitempty"`

	// keep is which of the two stays when the node answers again, and the pod is ready.
	// +optional
	// +default="BestPlaced"
	Keep Keep `json:"keep,omitempty"`
}

// Keep is which of a pod and its replacement stays.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Enum=Original;Replacement;LongestRunning;BestPlaced
type Keep string

// Which of a pod and its replacement stays.
const (
	KeepOriginal    Keep = "Original"
	KeepReplacement Keep = "Replacement"
	// KeepLongestRunning keeps the one whose containers have run for longer.
	KeepLongestRunning Keep = "LongestRunning"
	// KeepBestPlaced keeps the one that leaves fewer pods misplaced, and the original where both leave as many.
	KeepBestPlaced Keep = "BestPlaced"
)
