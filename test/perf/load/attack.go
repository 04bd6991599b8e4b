// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Attack is what a tenant does who may create pods and no more.
type Attack string

const (
	// Misfits has pods that no node fits, over the levels of all others. It is what AttackLevels is compared with: every
	// refusal is written to the API, whatever the pod asks for.
	Misfits Attack = "misfits"
	// AttackLevels has pods that no node fits ask for as many levels as there can be, each for
	// others, the first of which no two nodes have alike.
	AttackLevels Attack = "levels"
	// AttackOwners has pods on nodes name a ReplicaSet that does not exist.
	AttackOwners Attack = "owners"

	misfits          = 120 // of Misfits and of AttackLevels
	nodesPerAttacker = 10  // of those who name an owner
)

// Attackers are the pods of the attack, for a scheduler.
func (w Workload) Attackers(scheduler string) []*corev1.Pod {
	var pods []*corev1.Pod
	switch w.Attack {
	case Misfits:
		for i := range misfits {
			pods = append(pods, misfit(i, scheduler, w.Levels))
		}
	case AttackLevels:
		for i := range misfits {
			pods = append(pods, misfit(i, scheduler, levelsOfOnesOwn(i)))
		}
	case AttackOwners:
		for i := range max(w.Nodes/nodesPerAttacker, 1) {
			pod := ownerAttacker(i, scheduler)
			// Nodes are dealt to the racks in turn, and a step of seven meets all racks.
			pod.Spec.NodeName = fmt.Sprintf(nodeNamePattern, i*7%w.Nodes)
			pods = append(pods, pod)
		}
	}
	return pods
}

// Queued is how many pods lie in the queue before the first is bound, attackers among them.
func (w Workload) Queued() int {
	if w.Attack == Misfits || w.Attack == AttackLevels {
		return w.Pods() + misfits
	}
	return w.Pods()
}

func misfit(i int, scheduler string, levels []string) *corev1.Pod {
	pod := Lone(fmt.Sprintf("misfit-%03d", i), scheduler)
	pod.Labels = map[string]string{AppLabel: "attack"}
	pod.Spec.NodeSelector = map[string]string{PoolLabel: poolNone}
	pod.Spec.TopologySpreadConstraints = soft(levels, pod.Labels)
	return pod
}

// levelsOfOnesOwn are those of pod i of AttackLevels.
func levelsOfOnesOwn(i int) []string {
	keys := []string{corev1.LabelHostname}
	for l := 2; l <= mostLevels; l++ {
		keys = append(keys, fmt.Sprintf("example.com/attack-%03d-%02d", i, l)) // no node has it
	}
	return keys
}

func ownerAttacker(i int, scheduler string) *corev1.Pod {
	pod := Lone(fmt.Sprintf("owners-%05d", i), scheduler)
	pod.OwnerReferences = []metav1.OwnerReference{{
		// The garbage collector knows no such version, and leaves the pod alone.
		APIVersion: "apps/v9", Kind: "ReplicaSet", Name: "nobody", UID: types.UID("nobody"), Controller: new(true),
	}}
	return pod
}
