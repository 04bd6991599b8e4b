// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// AppLabel names the group of a pod.
	AppLabel = "app"
	// image is never pulled: nobody plays the nodes.
	image = "registry.example.com/pause:3.10"
	// limitsAnnotation is read by ours only: the others have nothing like it.
	limitsAnnotation = "espalier.dev/domain-limits"
	hash             = "5d4f8c7b9"
	port             = 8080
)

// GroupName is the name of a group's Deployment, and of its ReplicaSet up to the hash.
func GroupName(group int) string { return fmt.Sprintf("web-%03d", group) }

// ReplicaSet makes the ReplicaSet that the pods of a group belong to. Nobody acts on
// it; schedulers follow it to the Deployment, and by its selector to its pods.
func ReplicaSet(group int) *appsv1.ReplicaSet {
	labels := groupLabels(group)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: GroupName(group) + "-" + hash, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: GroupName(group), UID: types.UID("deployment-" + GroupName(group)), Controller: new(true),
			}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec()},
		},
	}
}

// MakePod makes the pod that comes as number i, for a scheduler, owned by the ReplicaSet
// of its group as the API server knows it. What it asks for is what users write
// today: topologySpreadConstraints, one a level. Nothing in it is for one scheduler only, but
// for limits, which the others do not know.
func (w Workload) MakePod(i int, scheduler string, owner *appsv1.ReplicaSet) *corev1.Pod {
	group := w.Group(i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%06d", GroupName(group), hash, i), Labels: groupLabels(group),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: spec(),
	}
	pod.Spec.SchedulerName = scheduler
	pod.Spec.TopologySpreadConstraints = soft(w.Levels, pod.Labels)
	w.restrict(pod, group)
	switch {
	case !w.Fits(group):
		pod.Spec.NodeSelector = map[string]string{PoolLabel: poolNone}
	case w.Selective:
		pod.Spec.NodeSelector = map[string]string{PoolLabel: poolSmall}
	}
	if w.HostPort {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
	if request := w.request(group); request > 0 {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(request, resource.DecimalSI)
	}
	return pod
}

// restrict adds what filters have to look at more than one node for.
func (w Workload) restrict(pod *corev1.Pod, group int) {
	mates := &metav1.LabelSelector{MatchLabels: groupLabels(group)}
	if w.Hard {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: mates,
		})
	}
	if w.Apart {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: mates}},
		}}
	}
	if w.Limited {
		// What an even spread brings a rack, and not one pod more: as tight as it can be.
		zone := (w.PerGroup + regions*zonesOfRegion - 1) / (regions * zonesOfRegion)
		rack := (zone + racksOfZone - 1) / racksOfZone
		pod.Annotations = map[string]string{limitsAnnotation: fmt.Sprintf("%s=1,%s=%d", corev1.LabelHostname, RackLabel, rack)}
	}
	if w.Claims {
		pod.Spec.Volumes = []corev1.Volume{claimed(pod.Name)}
	}
}

// soft asks for a spread over each of the keys, of pods that have these labels.
func soft(keys []string, labels map[string]string) []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range keys {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		})
	}
	return constraints
}

// CrowdPod makes a pod that lies on a node already, number i of all such pods.
func CrowdPod(i int, node string) *corev1.Pod {
	pod := Lone(fmt.Sprintf("crowd-%07d", i), "")
	pod.Labels = map[string]string{AppLabel: fmt.Sprintf("crowd-%02d", i%50)}
	pod.Spec.NodeName = node
	return pod
}

// Lone makes a pod that belongs to nobody and asks for nothing.
func Lone(name, scheduler string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec()}
	pod.Spec.SchedulerName = scheduler
	return pod
}

func groupLabels(group int) map[string]string {
	return map[string]string{AppLabel: GroupName(group), "pod-template-hash": hash}
}

func spec() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name: "main", Image: image,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
		}},
	}
}
