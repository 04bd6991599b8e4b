// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"crypto/sha256"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Needs tells pods apart as filters do that look at nothing but the pod and one node:
// what they said of a node for one pod holds for all with equal Needs, of one profile,
// as long as neither's levels leave the node out. It is a hash of what they ask for. "" belongs to no pod.
type Needs string

// NeedsOf returns a pod's needs. They are the hash of a copy that has only what such filters read: the node's name, cordon, taints,
// resources, ports, node affinity, constraints and platforms. What differs from pod to pod of one template, such as a name, an index or the volume
// of a token, is not among it. What a filter reads besides is among AddedNeeds.
func NeedsOf(pod *corev1.Pod) (Needs, error) {
	bare := corev1.Pod{Spec: corev1.PodSpec{
		NodeName:       pod.Spec.NodeName,
		NodeSelector:   pod.Spec.NodeSelector,
		Tolerations:    pod.Spec.Tolerations,
		OS:             pod.Spec.OS,
		HostNetwork:    pod.Spec.HostNetwork,
		Overhead:       pod.Spec.Overhead,
		Resources:      pod.Spec.Resources,
		Containers:     bareContainers(pod.Spec.Containers),
		InitContainers: bareContainers(pod.Spec.InitContainers),
	}}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		bare.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}}
	}
	for _, annotation := range []string{ConstraintsAnnotation, PlatformsAnnotation} {
		if text := pod.Annotations[annotation]; text != "" {
			metav1.SetMetaDataAnnotation(&bare.ObjectMeta, annotation, text)
		}
	}
	// Not as JSON, which takes longer and allocates twice as often.
	written, err := bare.Marshal()
	if err != nil {
		return "", fmt.Errorf("writing down the needs of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	sum := sha256.Sum256(written) // a tenant may write as much as an object holds
	return Needs(sum[:]), nil
}

func bareContainers(containers []corev1.Container) []corev1.Container {
	all := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		// The policy makes a sidecar, whose resources add up.
		all[i] = corev1.Container{Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
	}
	return all
}

// addedNeedsKey is where those needs of the pod being scheduled are kept for the cycle that are not among NeedsOf.
const addedNeedsKey fwk.StateKey = "Espalier/AddedNeeds"

type addedNeeds Needs

// Clone returns the same.
func (a addedNeeds) Clone() fwk.StateData { return a }

// AddNeeds tells pods apart that have the same NeedsOf: what the filter of a plugin said of one pod holds for those alone for which it added the
// same text.
func AddNeeds(state fwk.CycleState, plugin, text string) {
	state.Write(addedNeedsKey, addedNeeds(AddedNeeds(state)+Needs(plugin+" "+text+"\n")))
}

// AddedNeeds is what AddNeeds was given, "" for nothing.
func AddedNeeds(state fwk.CycleState) Needs {
	data, err := state.Read(addedNeedsKey)
	if err != nil {
		return ""
	}
	added, _ := data.(addedNeeds)
	return Needs(added)
}

// ErrPrefers says that a pod's preferences, those of others about it, or the volumes that it claims decide between the nodes that are
// equals to the tree.
var ErrPrefers = errors.New("plugin SpreadTree leaves the choice between nodes that are equals to the scorers")

// Prefers reports whether a pod has preferences of its own about nodes or about pods
// beside it, which break the ties of its placement.
func Prefers(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	return a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}

// Scoring is what of a profile's scoring decides about pods that prefer nothing themselves. The zero Scoring is that of kube-scheduler's
// defaults.
type Scoring struct {
	// PrefersNodes says that NodeAffinity's addedAffinity prefers some nodes, for all pods.
	PrefersNodes bool
	// IgnoresTerms says that InterPodAffinity scores no terms of pods that run for such a pod, and IgnoresRequired that it scores none that these
	// require.
	IgnoresTerms, IgnoresRequired bool
}
