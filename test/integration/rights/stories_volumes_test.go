// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"

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
	_, err := cluster.client.CoreV1().PersistentVolumeClaims(s.name).Create(s.Context(), claim, metav1.CreateOptions{})
	s.must(err)
	pod := s.pod(name)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	s.create(pod)
}

// promises: a volume that is there is promised to the claim of a pod.
func promises(s *stage) error {
	name := s.name + "-there"
	s.class(name, volume.NotSupportedProvisioner)
	_, err := cluster.client.CoreV1().PersistentVolumes().Create(s.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: name, Capacity: oneGigabyte, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	// The controller that makes volumes available is not there.
	_, err = cluster.client.CoreV1().PersistentVolumes().Patch(s.Context(), name, mergePatch, []byte(`{"status":{"phase":"Available"}}`), metav1.PatchOptions{}, "status")
	s.must(err)
	s.claimant("promised", name)
	return s.wait("the volume to be promised", func() error {
		now, err := cluster.client.CoreV1().PersistentVolumes().Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && now.Spec.ClaimRef == nil {
			err = errors.New("it is not")
		}
		return err
	})
}

// orders: a volume that is not there is asked for, on the node that the pod gets.
func orders(s *stage) error {
	name := s.name + "-made"
	s.class(name, "csi.example.com")
	s.claimant("ordered", name)
	return s.wait("the claim to name the node", func() error {
		now, err := cluster.client.CoreV1().PersistentVolumeClaims(s.name).Get(s.Context(), "ordered", metav1.GetOptions{})
		if err == nil && now.Annotations[volume.AnnSelectedNode] != s.name {
			err = errors.New("it does not")
		}
		return err
	})
}
