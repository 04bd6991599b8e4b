// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-scheduler/espalier/internal/informersync"
)

// missing are kinds that are.
type missing []informersync.Unfilled

func (m missing) Missing(group string) (all []informersync.Unfilled) {
	for _, u := range m {
		if u.Resource.Group == group {
			all = append(all, u)
		}
	}
	return all
}

func unfilled(group, name, reason string) informersync.Unfilled {
	return informersync.Unfilled{Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Reason: reason, Message: "in its words"}
}

// A pod waits for the kinds that it needs, and for no others.
func TestWait(t *testing.T) {
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
	}
	request := func(name corev1.ResourceName) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("1")}}}}
	}
	storage, devices := unfilled(storagev1.GroupName, "csinodes", "Forbidden"), unfilled(resourcev1.GroupName, "devicetaintrules", "Forbidden")
	absent := unfilled(resourcev1.GroupName, "devicetaintrules", "NotFound")
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		// forStorage, forDevices, forAbsent: it waits for kinds of storage, of devices, and of devices that the API server does not have.
		forStorage, forDevices, forAbsent bool
	}{
		"a pod of nothing but processors": {corev1.PodSpec{Containers: request(corev1.ResourceCPU)}, false, false, false},
		"a pod with a scratch volume":     {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), false, false, false},
		"a pod with a token":              {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}), false, false, false},
		"a pod with a volume":             {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}), true, false, false},
		"a pod with a volume of its own":  {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), true, false, false},
		"a pod with an inline volume":     {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), true, false, false},
		"a pod with a claim":              {corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c"}}}, false, true, true},
		"a pod with an extended resource": {corev1.PodSpec{Containers: request("example.com/gpu")}, false, true, false},
		"one of an init container":        {corev1.PodSpec{InitContainers: request("example.com/gpu")}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			if err := Wait(pod, missing{}); err != nil {
				t.Errorf("it waits for nothing: %v", err)
			}
			for _, of := range []struct {
				kind informersync.Unfilled
				want bool
			}{{storage, tc.forStorage}, {devices, tc.forDevices}, {absent, tc.forAbsent}} {
				err := Wait(pod, missing{of.kind})
				if (err != nil) != of.want || err != nil && !strings.HasSuffix(err.Error(), of.kind.Resource.Resource+" of "+of.kind.Resource.GroupVersion().String()+": "+of.kind.Reason) {
					t.Errorf("without %s (%s): %v, want that it waits: %t", of.kind.Resource.Resource, of.kind.Reason, err, of.want)
				}
			}
		})
	}
}

// The scheduler starts without these kinds, and waits for all others.
func TestOptions(t *testing.T) {
	for of, want := range map[schema.GroupVersionResource][2]bool{
		{Version: "v1", Resource: "persistentvolumes"}:                                 {false, false},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}:             {false, false},
		{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}:        {false, false},
		{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}:                 {true, false},
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}:          {true, false},
		{Group: "placement.espalier.dev", Version: "v1alpha1", Resource: "partitions"}: {false, true},
	} {
		if got := [2]bool{Options.StandIn(of), Options.Absent(of)}; got != want {
			t.Errorf("%s: %v, want %v", of, got, want)
		}
	}
}
