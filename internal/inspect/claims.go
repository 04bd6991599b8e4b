// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// claimsOf are the volume claims that controllers would make for a pod, and that a cluster lacks: those of a StatefulSet's templates, and those
// of ephemeral volumes. They are not bound.
func claimsOf(s *snapshot.Snapshot, pod *corev1.Pod, templates []corev1.PersistentVolumeClaim) []runtime.Object {
	var all []runtime.Object
	add := func(name string, spec *corev1.PersistentVolumeClaimSpec, owners []metav1.OwnerReference) {
		if _, err := find[*corev1.PersistentVolumeClaim](s, Ref{pod.Namespace, "PersistentVolumeClaim", name}); err == nil {
			return
		}
		claim := &corev1.PersistentVolumeClaim{Spec: *spec.DeepCopy(), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		claim.Namespace, claim.Name, claim.UID, claim.OwnerReferences = pod.Namespace, name, types.UID(pod.Namespace+"/"+name), owners
		all = append(all, claim)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			owner := []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
			add(pod.Name+"-"+v.Name, &v.Ephemeral.VolumeClaimTemplate.Spec, owner)
		case v.PersistentVolumeClaim != nil:
			at := slices.IndexFunc(templates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == v.Name })
			if at >= 0 {
				add(v.PersistentVolumeClaim.ClaimName, &templates[at].Spec, nil)
			}
		}
	}
	return all
}

// withoutMissingClaims is a pod without the volumes whose claims do not exist, with a sentence on each. Of the next pod of a StatefulSet the
// claims come with the pod, so that the filters would refuse it on all nodes for what cannot be there yet. With onlyMade those
// that no controller makes are kept.
func withoutMissingClaims(s *snapshot.Snapshot, pod *corev1.Pod, onlyMade bool) (*corev1.Pod, []string) {
	var sentences []string
	kept := slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool {
		var name string
		made := true
		switch {
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
			made = name == v.Name+"-"+pod.Name
		default:
			return false
		}
		if _, err := find[*corev1.PersistentVolumeClaim](s, Ref{pod.Namespace, "PersistentVolumeClaim", name}); err == nil || onlyMade && !made {
			return false
		}
		sentences = append(sentences, fmt.Sprintf("The claim %s does not exist. On which nodes its volume can be is not looked at.", name))
		return true
	})
	if len(sentences) == 0 {
		return pod, nil
	}
	pod = pod.DeepCopy()
	pod.Spec.Volumes = kept
	return pod, sentences
}

// needsDevices reports whether a pod asks for devices by a template. The claim that its controller would make is not simulated.
func needsDevices(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimTemplateName != nil })
}
