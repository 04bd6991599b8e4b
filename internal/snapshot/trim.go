// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
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
		for i := range o.Spec.VolumeClaimTemplates {
			o.Spec.VolumeClaimTemplates[i].Annotations = nil
		}
	case *appsv1.DaemonSet:
		trimTemplate(&o.Spec.Template)
	case *batchv1.Job:
		o.Spec, o.Status = batchv1.JobSpec{ActiveDeadlineSeconds: o.Spec.ActiveDeadlineSeconds}, batchv1.JobStatus{}
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			trimTemplate(o.Spec.Template)
		}
	default:
		trimStorage(o)
	}
	return o
}

// trimStorage leaves out what drivers of volumes and devices are told: it is theirs to read, and may be a password.
func trimStorage(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.PersistentVolume:
		o.Spec.MountOptions = nil
		if csi := o.Spec.CSI; csi != nil {
			csi.VolumeAttributes = nil
		}
		if flex := o.Spec.FlexVolume; flex != nil {
			flex.Options = nil
		}
	case *storagev1.StorageClass:
		o.Parameters, o.MountOptions = nil, nil
	case *storagev1.VolumeAttachment:
		o.Status.AttachmentMetadata, o.Status.AttachError, o.Status.DetachError = nil, nil, nil
	case *resourcev1.ResourceClaim:
		o.Spec.Devices.Config = nil
		if o.Status.Allocation != nil {
			o.Status.Allocation.Devices.Config = nil
		}
	case *resourcev1.DeviceClass:
		o.Spec.Config = nil
	}
}

func trimOurs(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	delete(o.Object, "status")
	return o
}

func trimTemplate(t *corev1.PodTemplateSpec) {
	t.Annotations = trimAnnotations(t.Annotations)
	trimPod(&t.Spec)
}

// DefaultClassAnnotation is on the StorageClass of claims that name none.
const DefaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// read are the annotations that a scheduler or this command reads, beside Espalier's own.
var read = sets.New(
	corev1.PodDeletionCost, corev1.MirrorPodAnnotationKey, corev1.BetaStorageClassAnnotation, corev1.MigratedPluginsAnnotationKey, "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt",
	DefaultClassAnnotation, "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
)

// trimAnnotations leaves those that are read. Others may have anything in them: the command line by which an object was changed, say.
func trimAnnotations(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, clusterview.Prefix) && !read.Has(key) })
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
			if v.CSI != nil {
				v.CSI.VolumeAttributes = nil
			}
			volumes = append(volumes, spec.Volumes[i])
		}
	}
	spec.Volumes = volumes
}

// trimPodStatus leaves of a status how the containers fared.
func trimPodStatus(status *corev1.PodStatus) {
	status.Message = ""
	for _, all := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
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
