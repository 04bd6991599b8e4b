// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// claimsOf are the volume claims that controllers would make for a pod, and that a cluster lacks: those of a StatefulSet's templates, and those
// of ephemeral volumes. See arriving.
func claimsOf(s *snapshot.Snapshot, pod *corev1.Pod, templates []corev1.PersistentVolumeClaim) []runtime.Object {
	var all []runtime.Object
	add := func(name string, spec *corev1.PersistentVolumeClaimSpec, owners []metav1.OwnerReference) {
		if _, err := find[*corev1.PersistentVolumeClaim](s, Ref{pod.Namespace, "PersistentVolumeClaim", name}); err == nil {
			return
		}
		claim := &corev1.PersistentVolumeClaim{Spec: *spec.DeepCopy(), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		claim.Namespace, claim.Name, claim.UID, claim.OwnerReferences = pod.Namespace, name, types.UID(pod.Namespace+"/"+name), owners
		all = append(all, arriving(s, claim)...)
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

// arriving is a new claim as it is when the scheduler looks at its pod. One whose class waits for a consumer is not bound. Any other one is bound by
// then, to the volume that it names or to one that is made for it: where that is cannot be known, and it is taken to be everywhere.
func arriving(s *snapshot.Snapshot, claim *corev1.PersistentVolumeClaim) []runtime.Object {
	claim = claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimPending
	if claim.Spec.StorageClassName == nil && claim.Annotations[corev1.BetaStorageClassAnnotation] == "" {
		if class := defaultClass(s); class != nil {
			claim.Spec.StorageClassName = &class.Name
		}
	}
	if mode := modeOf(s, volume.GetPersistentVolumeClaimClass(claim)); mode == storagev1.VolumeBindingWaitForFirstConsumer && claim.Spec.VolumeName == "" {
		return []runtime.Object{claim}
	}
	all := []runtime.Object{claim}
	if _, err := find[*corev1.PersistentVolume](s, Ref{"", "PersistentVolume", claim.Spec.VolumeName}); err != nil {
		claim.Spec.VolumeName = "simulated-" + claim.Namespace + "-" + claim.Name
		all = append(all, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}})
	}
	claim.Status.Phase = corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	return all
}

// modeOf says when claims of a class are bound: at once, if there is no such class.
func modeOf(s *snapshot.Snapshot, name string) storagev1.VolumeBindingMode {
	class, err := find[*storagev1.StorageClass](s, Ref{"", "StorageClass", name})
	if err != nil {
		return storagev1.VolumeBindingImmediate
	}
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

// defaultClass is the class that the API server gives claims without one, nil if there is none: of several the newest, and of these the first
// by name.
func defaultClass(s *snapshot.Snapshot) *storagev1.StorageClass {
	var is *storagev1.StorageClass
	for _, c := range snapshot.Of[*storagev1.StorageClass](s) {
		if c.Annotations[snapshot.DefaultClassAnnotation] != "true" {
			continue
		}
		if is == nil || cmp.Or(is.CreationTimestamp.Compare(c.CreationTimestamp.Time), strings.Compare(c.Name, is.Name)) < 0 {
			is = c
		}
	}
	return is
}

// withoutMissingClaims is a pod without the volumes whose claims do not exist, with a sentence on each. Of the next pod of a StatefulSet the
// claims come with the pod, so that the filters would refuse it on all nodes for what cannot be there yet. Those that no controller makes are
// kept.
func withoutMissingClaims(s *snapshot.Snapshot, pod *corev1.Pod) (*corev1.Pod, []string) {
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
		if _, err := find[*corev1.PersistentVolumeClaim](s, Ref{pod.Namespace, "PersistentVolumeClaim", name}); err == nil || !made {
			return false
		}
		sentences = append(sentences, fmt.Sprintf("The claim %s does not exist. On which nodes its volume can be is not evaluated.", name))
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
