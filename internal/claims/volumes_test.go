// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
)

type handle struct {
	fwk.Handle
	factory informers.SharedInformerFactory
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (handle) SharedDRAManager() fwk.SharedDRAManager                   { return nil }

// Nodes are compared by their space only where somebody knows it, and only for volumes that are not there yet.
func TestComparesCapacity(t *testing.T) {
	class := func(name, provisioner string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	}
	claim := func(name, class, bound string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: bound}}
	}
	driver := func(name string, capacity *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: capacity}}
	}
	pv := func(name, class string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{StorageClassName: class}, Status: corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	objects := []runtime.Object{
		class("local", volume.NotSupportedProvisioner), class("counts", "counts.example.com"), class("does-not", "other.example.com"), class("no-driver", "none.example.com"),
		driver("counts.example.com", new(true)), driver("other.example.com", nil),
		claim("local", "local", ""), claim("counts", "counts", ""), claim("bound", "counts", "pv"), claim("does-not", "does-not", ""), claim("no-driver", "no-driver", ""), claim("no-class", "", ""),
		claim("p-scratch", "counts", ""),
		class("made", "other.example.com"), claim("made", "made", ""), claim("taken", "does-not", ""),
		pv("made", "made", corev1.VolumeAvailable), pv("taken", "does-not", corev1.VolumeBound),
	}
	named := claim("named", "", "")
	named.Spec.StorageClassName, named.Annotations = nil, map[string]string{corev1.BetaStorageClassAnnotation: "counts"}
	objects = append(objects, named)
	h := handle{factory: informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)}
	c := New(h)
	h.factory.Start(t.Context().Done())
	h.factory.WaitForCacheSync(t.Context().Done())
	by := func(claim string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
	}
	for name, tc := range map[string]struct {
		volume corev1.VolumeSource
		want   bool
	}{
		"local":                  {by("local"), true},
		"a driver that counts":   {by("counts"), true},
		"a class by annotation":  {by("named"), true},
		"a volume that is there": {by("made"), true},
		"one that is taken":      {by("taken"), false},
		"bound":                  {by("bound"), false},
		"one that does not":      {by("does-not"), false},
		"no driver":              {by("no-driver"), false},
		"no class":               {by("no-class"), false},
		"no claim":               {by("none"), false},
		"ephemeral":              {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, true},
		"no volume of a cluster": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: tc.volume}}}}
		if got := c.Compared(pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
