// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

var oneGigabyte = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

// class makes a class of volumes that are bound when a pod comes.
func (s *stage) class(name, provisioner string) {
	s.Helper()
	late := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := cluster.client.StorageV1().StorageClasses().Create(s.Context(),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &late}, metav1.CreateOptions{})
	s.must(err)
}

// claimant makes a claim of that class and a pod that has it.
func (s *stage) claimant(name, class string) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: oneGigabyte},
		},
	}
	made(s, cluster.client.CoreV1().PersistentVolumeClaims(s.name).Create, claim)
	pod := s.pod(name)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	s.create(pod)
}

// promises: a volume that is there is promised to the claim of a pod.
func promises(s *stage) error {
	name := s.name + "-there"
	s.class(name, volume.NotSupportedProvisioner)
	made(s, cluster.client.CoreV1().PersistentVolumes().Create, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: name, Capacity: oneGigabyte, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	})
	// The controller that makes volumes available is not there.
	_, err := cluster.client.CoreV1().PersistentVolumes().Patch(s.Context(), name, mergePatch, []byte(`{"status":{"phase":"Available"}}`), metav1.PatchOptions{}, "status")
	s.must(err)
	s.claimant("promised", name)
	return sees(s, "the volume to be promised", cluster.client.CoreV1().PersistentVolumes().Get, name, func(now *corev1.PersistentVolume) bool {
		return now.Spec.ClaimRef != nil
	})
}

// orders: a volume that is not there is asked for, on the node that the pod gets.
func orders(s *stage) error {
	name := s.name + "-made"
	s.class(name, "csi.example.com")
	s.claimant("ordered", name)
	return sees(s, "the claim to name the node", cluster.client.CoreV1().PersistentVolumeClaims(s.name).Get, "ordered", func(now *corev1.PersistentVolumeClaim) bool {
		return now.Annotations[volume.AnnSelectedNode] == s.name
	})
}
