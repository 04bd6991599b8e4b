// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// Claims knows what pods claim.
type Claims struct {
	devices fwk.SharedDRAManager
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	drivers storagelisters.CSIDriverLister
}

// New returns what knows it from the scheduler's own informers, which VolumeBinding and DynamicResources have as well.
func New(handle fwk.Handle) *Claims {
	factory := handle.SharedInformerFactory()
	return &Claims{
		devices: handle.SharedDRAManager(),
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		drivers: factory.Storage().V1().CSIDrivers().Lister(),
	}
}

// Compared reports whether nodes are compared for a pod by what it claims.
func (c *Claims) Compared(pod *corev1.Pod) bool {
	return c.hasAlternatives(pod) || c.comparesCapacity(pod)
}

// comparesCapacity reports whether a volume of a pod is still to be found or made, where nodes are compared by how much space they have for
// it: volumes that somebody has made, and drivers that say how much is left.
func (c *Claims) comparesCapacity(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		var name string
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, &v)
		default:
			return false
		}
		claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName != "" {
			return false // one that is not there keeps the pod from all nodes
		}
		class, err := c.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
		return err == nil && c.knowsCapacity(class)
	})
}

// knowsCapacity reports whether it is known how much space there is for the volumes of a class.
func (c *Claims) knowsCapacity(class *storagev1.StorageClass) bool {
	if class.Provisioner == volume.NotSupportedProvisioner {
		return true
	}
	if driver, err := c.drivers.Get(class.Provisioner); err == nil && ptr.Deref(driver.Spec.StorageCapacity, false) {
		return true
	}
	all, err := c.volumes.List(labels.Everything())
	return err == nil && slices.ContainsFunc(all, func(v *corev1.PersistentVolume) bool {
		return v.Spec.StorageClassName == class.Name && v.Status.Phase == corev1.VolumeAvailable
	})
}
