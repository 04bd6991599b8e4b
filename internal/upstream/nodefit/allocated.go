// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/features"
)

// allocated is a pod as its kubelet counts it: with what it has been given, whatever it asks for since. A pod that is resized in
// place gets more when the kubelet can give it, and until then another pod may come; kube-scheduler keeps what was asked for.
// The pod is returned as it is where the two are the same.
func allocated(pod *corev1.Pod) *corev1.Pod {
	given := make(map[string]corev1.ResourceList)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if s := &statuses[i]; s.AllocatedResources != nil {
				given[s.Name] = s.AllocatedResources
			}
		}
	}
	// Of a container that has not been started yet, or was given nothing, its status does not say what it was given. That of the pod has it in its sum.
	summed := deferred(pod)
	differs := func(containers []corev1.Container) bool {
		for i := range containers {
			if is, known := given[containers[i].Name]; (known || summed) && !equality.Semantic.DeepEqual(is, containers[i].Resources.Requests) {
				return true
			}
		}
		return false
	}
	whole := pod.Spec.Resources != nil && pod.Status.AllocatedResources != nil
	if !whole && !differs(pod.Spec.InitContainers) && !differs(pod.Spec.Containers) {
		return pod
	}
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if is, known := given[containers[i].Name]; known || summed {
				containers[i].Resources.Requests = is
			}
		}
	}
	if whole {
		for name := range pod.Spec.Resources.Requests {
			if is, known := pod.Status.AllocatedResources[name]; known {
				pod.Spec.Resources.Requests[name] = is
			}
		}
	}
	return pod
}

// deferred reports whether a kubelet does not give a pod yet what it asks for, and says what it has given the pod as a whole.
func deferred(pod *corev1.Pod) bool {
	s := &pod.Status
	return resourcehelper.IsPodResizeDeferred(pod) && s.AllocatedResources != nil && s.Resources != nil && s.Resources.Requests != nil &&
		utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodLevelResourcesVerticalScaling) // or the sum is not looked at
}
