// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Family names the pods among which all of a pod's revision are, by what the pod says
// of itself: an index of pods can be kept by it, where one by identity could not, because
// what owns a ReplicaSet changes without its pods. Two pods of one revision are of
// one family; two of one family may be of different workloads or revisions.
func Family(pod *corev1.Pod) string {
	if w := named(pod); w.Kind != KindPod {
		return w.String()
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return string(owner.UID)
	}
	return string(pod.UID)
}

// Regarding is whom to tell of a pod's fate: the controller at the top of its owner
// chain, or the pod itself if it has none. Whoever names a workload by a label has no
// object by that name.
func (i *Identifier) Regarding(pod *corev1.Pod) corev1.ObjectReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return corev1.ObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod",
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}
	}
	owner, _ = i.top(pod.Namespace, owner)
	return corev1.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind,
		Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID,
	}
}
