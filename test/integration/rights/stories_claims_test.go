// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-helpers/storage/volume"
)

// devices puts a device on the stage's node, of a class that is also a resource of that name.
func (s *stage) devices(name string) {
	s.Helper()
	driver := name + ".example.com"
	made(s, cluster.client.ResourceV1().DeviceClasses().Create, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{
			ExtendedResourceName: new(driver + "/device"),
			Selectors:            []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`}}},
		},
	})
	made(s, cluster.client.ResourceV1().ResourceSlices().Create, &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &s.name, Pool: resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "device"}},
		},
	})
}

// claiming makes a claim for a device, and a pod that has the claim.
func (s *stage) claiming(name string) *corev1.Pod {
	s.Helper()
	class := s.name + "-" + name
	s.devices(class)
	made(s, cluster.client.ResourceV1().ResourceClaims(s.name).Create, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
			{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}},
		}}},
	})
	pod := s.pod(name)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}
	return pod
}

// asking is a pod that asks for a device as a resource, without a claim.
func (s *stage) asking(name string) *corev1.Pod {
	s.Helper()
	class := s.name + "-" + name
	s.devices(class)
	one := corev1.ResourceList{corev1.ResourceName(class + ".example.com/device"): resource.MustParse("1")}
	pod := s.pod(name)
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	return pod
}

// allocates: a pod gets the device that it claims.
func allocates(s *stage) error { return s.bound(s.create(s.claiming("claimed"))) }

// lends: a pod that asks for a resource gets the device behind it, and a claim of its own.
func lends(s *stage) error { return s.bound(s.create(s.asking("lent"))) }

// persists: somebody else writes the claim at the same moment, and the pod is placed all the same, without another try. Tries before that
// write are not counted: the class, the devices and the pod come by watches of their own, and the pod may be known first.
func persists(s *stage) error {
	pod := s.claiming("contested")
	var once sync.Once
	written := make(chan time.Time, 1)
	s.proxy.before(func(_ http.ResponseWriter, info *apirequest.RequestInfo) bool {
		if info.Resource == "resourceclaims" && info.Name == "contested" && info.Verb == "update" {
			once.Do(func() {
				written <- time.Now()
				_, err := cluster.client.ResourceV1().ResourceClaims(s.name).Patch(s.Context(), "contested", mergePatch,
					[]byte(`{"metadata":{"labels":{"touched":"yes"}}}`), metav1.PatchOptions{})
				if err != nil {
					s.Error(err)
				}
			})
		}
		return false
	})
	defer s.proxy.before(nil)
	if err := s.bound(s.create(pod)); err != nil {
		return err
	}
	var since time.Time
	select {
	case since = <-written:
	default:
		return errors.New("nobody else wrote the claim")
	}
	// Before it is tried again, the failure has been told for a second.
	event, err := s.event("contested", "FailedScheduling")
	if err != nil {
		return nil
	}
	told := event.EventTime.Time
	if event.Series != nil {
		told = event.Series.LastObservedTime.Time
	}
	if told.After(since) {
		return fmt.Errorf("it took more than one try: %s", event.Message)
	}
	return nil
}

// unbindable has the API server in trouble whenever that pod is bound.
func (s *stage) unbindable(name string) {
	s.proxy.before(func(w http.ResponseWriter, info *apirequest.RequestInfo) bool {
		return info.Subresource == "binding" && info.Name == name && fail(w)
	})
}

// releases: a pod that gets a device and cannot be bound lets go of it.
func releases(s *stage) error {
	s.unbindable("released")
	defer s.proxy.before(nil)
	s.create(s.claiming("released"))
	return sees(s, "the device to be let go", cluster.client.ResourceV1().ResourceClaims(s.name).Get, "released", func(now *resourceapi.ResourceClaim) bool {
		return now.Status.Allocation != nil && len(now.Status.ReservedFor) == 0
	})
}

// clears: and the claim that was made for such a pod is removed.
func clears(s *stage) error {
	s.unbindable("cleared")
	defer s.proxy.before(nil)
	s.create(s.asking("cleared"))
	made := ""
	return s.wait("the claim that was made to be removed", func() error {
		list, err := cluster.client.ResourceV1().ResourceClaims(s.name).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if owners := list.Items[i].OwnerReferences; len(owners) == 1 && owners[0].Name == "cleared" {
				if made == "" {
					made = list.Items[i].Name
				}
				if list.Items[i].Name == made {
					return errors.New("it is there")
				}
			}
		}
		if made == "" {
			return errors.New("none was made")
		}
		return nil
	})
}

var oneGigabyte = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

// class makes a class of volumes that are bound when a pod comes.
func (s *stage) class(name, provisioner string) {
	s.Helper()
	late := storagev1.VolumeBindingWaitForFirstConsumer
	made(s, cluster.client.StorageV1().StorageClasses().Create, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &late})
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
	must(s, err)
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
