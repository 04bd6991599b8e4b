// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/volume"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const driver = "csi.example.com"

// claim is a claim named data, bound to the volume named v, and that volume.
func claim(mode corev1.PersistentVolumeAccessMode, change ...func(*corev1.PersistentVolume)) []runtime.Object {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv := st.MakePersistentVolume().Name("v").Capacity(size).AccessModes([]corev1.PersistentVolumeAccessMode{mode}).Obj()
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v"}}
	for _, c := range change {
		c(pv)
	}
	pvc := st.MakePersistentVolumeClaim().Namespace(namespace).Name("data").VolumeName("v").AccessModes([]corev1.PersistentVolumeAccessMode{mode}).
		Resources(corev1.VolumeResourceRequirements{Requests: size}).Annotation(volume.AnnBindCompleted, "true").Obj()
	return []runtime.Object{pv, pvc}
}

// drivers says that the driver is on these nodes, and that each can attach so many volumes.
func drivers(attach int32, names ...string) []runtime.Object {
	var list []runtime.Object
	for _, name := range names {
		list = append(list, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &attach},
			}}},
		})
	}
	return list
}

func inZone(zone string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{corev1.LabelTopologyZone: zone} }
}

func nearby(zone string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: st.MakeNodeSelector().In(corev1.LabelTopologyZone, []string{zone}, st.NodeSelectorTypeMatchExpressions).Obj()}
	}
}

func TestVolumeFilterRefuses(t *testing.T) {
	here := label(corev1.LabelTopologyZone, "here")
	class := st.MakeStorageClass().Name("late").VolumeBindingMode(storagev1.VolumeBindingWaitForFirstConsumer).Provisioner(volume.NotSupportedProvisioner).Obj()
	unbound := func(class string) *corev1.PersistentVolumeClaim {
		pvc := st.MakePersistentVolumeClaim().Namespace(namespace).Name("data").StorageClassName(&class).
			Resources(corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}).Obj()
		return pvc
	}
	at := st.MakeStorageClass().Name("at-once").VolumeBindingMode(storagev1.VolumeBindingImmediate).Provisioner(driver).Obj()
	for _, tc := range []refusalCase{
		{
			"VolumeRestrictions", join(nodes("n", 1), claim(corev1.ReadWriteOncePod), drivers(9, "n-0"), []runtime.Object{running("r", "n-0").PVC("data").Obj()}), pod("p").PVC("data"),
			"0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod." + noVictims(1),
		},
		{
			"NodeVolumeLimits", join(nodes("n", 1), claim(corev1.ReadWriteOnce), drivers(0, "n-0")), pod("p").PVC("data"),
			"0/1 nodes are available: 1 node(s) exceed max volume count." + noVictims(1),
		},
		{
			"VolumeBinding, the volume is elsewhere", join(nodes("n", 2, here), claim(corev1.ReadWriteOnce, nearby("there")), drivers(9, "n-0", "n-1")), pod("p").PVC("data"),
			"0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity." + notHelpful(2),
		},
		{
			"VolumeBinding, no volume", join(nodes("n", 2), []runtime.Object{class, unbound("late")}), pod("p").PVC("data"),
			"0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind." + notHelpful(2),
		},
		{
			"VolumeBinding, not bound yet", join(nodes("n", 2), []runtime.Object{at, unbound("at-once")}), pod("p").PVC("data"),
			"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims." + notHelpful(2),
		},
		{
			"VolumeZone", join(nodes("n", 2, here), claim(corev1.ReadWriteOnce, inZone("there")), drivers(9, "n-0", "n-1")), pod("p").PVC("data"),
			"0/2 nodes are available: 2 node(s) had no available volume zone." + notHelpful(2),
		},
	} {
		tc.run(t)
	}
}

// Devices are claimed like volumes; there are none of this class.
func TestDynamicResourcesRefuses(t *testing.T) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	wanted := func() *resourceapi.ResourceClaim {
		return st.MakeResourceClaim().Namespace(namespace).Name("one").Request("gpu").Obj()
	}
	elsewhere := wanted()
	elsewhere.Status = resourceapi.ResourceClaimStatus{
		Allocation:  &resourceapi.AllocationResult{NodeSelector: st.MakeNodeSelector().In(corev1.LabelHostname, []string{"elsewhere"}, st.NodeSelectorTypeMatchExpressions).Obj()},
		ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "other", UID: "other"}},
	}
	for _, tc := range []struct {
		name    string
		objects []runtime.Object
		want    string
	}{
		{"no device", []runtime.Object{class, wanted()}, "2 cannot allocate all claims"},
		{"no class", []runtime.Object{wanted()}, "request req-1: device class gpu does not exist"},
		{"the devices are elsewhere", []runtime.Object{class, elsewhere}, "2 resourceclaim not available on the node"},
	} {
		refusalCase{
			tc.name, join(nodes("n", 2), tc.objects), pod("p").PodResourceClaims(corev1.PodResourceClaim{Name: "one", ResourceClaimName: new("one")}),
			"0/2 nodes are available: " + tc.want + "." + notHelpful(2),
		}.run(t)
	}
}
