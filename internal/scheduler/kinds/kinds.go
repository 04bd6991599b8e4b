// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds says without which kinds the scheduler starts, and which pods wait for them.
//
// kube-scheduler waits for all kinds before it places its first pod. Devices and classes of storage are looked at for pods that have them, and
// for no others: a pod without is placed all the same. What a pod without them may depend on is waited for: pods, nodes, namespaces,
// volumes and claims; owners and services, by which pods are spread; disruption budgets, which say whom a pod may not make way for; and pod
// groups, whose pods are placed by another way through the scheduler.
package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/informersync"
)

// Options are those of the scheduler. Our own kinds need not be installed.
var Options = informersync.Options{
	Absent: func(of schema.GroupVersionResource) bool {
		return of.Group == placementv1alpha1.SchemeGroupVersion.Group
	},
	StandIn: func(of schema.GroupVersionResource) bool {
		return of.Group == resourcev1.GroupName || of.Group == storagev1.GroupName
	},
}

// Missing tells of the kinds of a group that the scheduler goes on without: a Tracker.
type Missing interface {
	Missing(group string) []informersync.Unfilled
}

// Wait says why a pod is not placed now: it needs a kind that the scheduler goes on without. Nil is that it does not.
func Wait(pod *corev1.Pod, kinds Missing) error {
	if storage(pod) {
		for _, u := range kinds.Missing(storagev1.GroupName) {
			return unread("has a volume", u)
		}
	}
	claims, extended := len(pod.Spec.ResourceClaims) > 0, extended(pod)
	if !claims && !extended {
		return nil
	}
	for _, u := range kinds.Missing(resourcev1.GroupName) {
		// Without the kind there is nothing of it, and an extended resource is one of a device plugin.
		if claims || u.Reason != string(metav1.StatusReasonNotFound) {
			return unread("asks for devices", u)
		}
	}
	return nil
}

// unread is what is written into the pod's condition. What the API server says besides the reason may change with each answer, and each change is a
// request: it is in the log.
func unread(pod string, u informersync.Unfilled) error {
	return fmt.Errorf("the pod %s, and the scheduler cannot read %s of %s: %s", pod, u.Resource.Resource, u.Resource.GroupVersion(), u.Reason)
}

// storage reports whether a pod has a volume that a storage system may have to attach.
func storage(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i].VolumeSource
		if v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil && v.EmptyDir == nil && v.HostPath == nil && v.Image == nil {
			return true
		}
	}
	return false
}

// extended reports whether a pod asks for a resource that may be one of devices.
func extended(pod *corev1.Pod) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}
