// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// trim leaves out of an object what decides nothing, in place.
func trim(o runtime.Object) runtime.Object {
	if m, is := o.(metav1.Object); is {
		m.SetManagedFields(nil)
		m.SetFinalizers(nil)
		m.SetAnnotations(trimAnnotations(m.GetAnnotations()))
	}
	switch o := o.(type) {
	case *corev1.Pod:
		trimPod(&o.Spec)
		trimPodStatus(&o.Status)
	case *appsv1.ReplicaSet:
		trimTemplate(&o.Spec.Template)
	case *appsv1.Deployment:
		trimTemplate(&o.Spec.Template)
	case *appsv1.StatefulSet:
		trimTemplate(&o.Spec.Template)
	case *appsv1.DaemonSet:
		trimTemplate(&o.Spec.Template)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			trimTemplate(o.Spec.Template)
		}
	}
	return o
}

func trimPolicy(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	delete(o.Object, "status")
	return o
}

func trimTemplate(t *corev1.PodTemplateSpec) {
	t.Annotations = trimAnnotations(t.Annotations)
	trimPod(&t.Spec)
}

// trimAnnotations leaves those that Kubernetes and Espalier read. Others may have anything in them, as has what kubectl applied last.
func trimAnnotations(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		ours := domain == "espalier.dev" || strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
		return !ours || key == corev1.LastAppliedConfigAnnotation
	})
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// trimPod leaves of a pod what filters and scores look at.
func trimPod(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	spec.EphemeralContainers, spec.ImagePullSecrets, spec.DNSConfig, spec.HostAliases = nil, nil, nil, nil
	var volumes []corev1.Volume
	for i := range spec.Volumes {
		v := &spec.Volumes[i].VolumeSource
		// The others are no reason for a node, or are refused by hardly any cluster.
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil {
			volumes = append(volumes, spec.Volumes[i])
		}
	}
	spec.Volumes = volumes
}

// trimPodStatus leaves of a status how the containers fared.
func trimPodStatus(status *corev1.PodStatus) {
	status.Message = ""
	for _, all := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range all {
			c := &all[i]
			for _, state := range []*corev1.ContainerState{&c.State, &c.LastTerminationState} {
				if state.Waiting != nil {
					state.Waiting.Message = ""
				}
				if state.Terminated != nil {
					state.Terminated.Message = ""
				}
			}
		}
	}
	for i := range status.Conditions {
		status.Conditions[i].Message = ""
	}
}
