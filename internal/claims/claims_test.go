// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
)

// manager is one of some claims.
type manager struct {
	fwk.SharedDRAManager
	claims
}

func (m manager) ResourceClaims() fwk.ResourceClaimTracker { return tracker{claims: m.claims} }

type tracker struct {
	fwk.ResourceClaimTracker
	claims
}

// claims are some, by name.
type claims map[string]*resourcev1.ResourceClaim

func (t tracker) Get(_, name string) (*resourcev1.ResourceClaim, error) {
	if claim := t.claims[name]; claim != nil {
		return claim, nil
	}
	return nil, errors.New("there is none")
}

// Only claims that list alternatives have a pod scored: others would be allocated on all nodes for nothing.
func TestAlternatives(t *testing.T) {
	claim := func(alternatives int) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r"}}
		for range alternatives {
			c.Spec.Devices.Requests[0].FirstAvailable = append(c.Spec.Devices.Requests[0].FirstAvailable, resourcev1.DeviceSubRequest{Name: "s"})
		}
		return c
	}
	c := &Claims{devices: manager{claims: claims{"plain": claim(0), "single": claim(1), "either": claim(2)}}}
	for name, tc := range map[string]struct {
		claim  corev1.PodResourceClaim
		status []corev1.PodResourceClaimStatus
		want   bool
	}{
		"plain":          {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("plain")}, nil, false},
		"one":            {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("single")}, nil, false},
		"two":            {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("either")}, nil, true},
		"unknown":        {corev1.PodResourceClaim{Name: "c", ResourceClaimName: new("none")}, nil, true},
		"of a template":  {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, []corev1.PodResourceClaimStatus{{Name: "b", ResourceClaimName: new("plain")}, {Name: "c", ResourceClaimName: new("either")}}, true},
		"not made yet":   {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, nil, true},
		"none is needed": {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: new("t")}, []corev1.PodResourceClaimStatus{{Name: "c"}}, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{tc.claim}}, Status: corev1.PodStatus{ResourceClaimStatuses: tc.status}}
		if got := c.hasAlternatives(pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if c.hasAlternatives(&corev1.Pod{}) {
		t.Error("a pod without claims has alternatives")
	}
}

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
