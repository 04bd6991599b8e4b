// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
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

// needsDevices reports whether a pod asks for devices by a template. The claim that its controller would make is not simulated.
func needsDevices(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimTemplateName != nil })
}
