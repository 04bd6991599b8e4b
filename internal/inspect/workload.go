// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Ref names a workload: kind/name in a namespace.
type Ref struct{ Namespace, Kind, Name string }

// kinds are the names by which people call the kinds of workloads.
var kinds = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment", "deployment.apps": "Deployment", "deployments.apps": "Deployment",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet", "statefulset.apps": "StatefulSet", "statefulsets.apps": "StatefulSet",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet", "replicaset.apps": "ReplicaSet", "replicasets.apps": "ReplicaSet",
	"replicationcontroller": "ReplicationController", "replicationcontrollers": "ReplicationController", "rc": "ReplicationController",
}

// ParseRef reads "deployment/web".
func ParseRef(namespace, text string) (Ref, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found || name == "" {
		return Ref{}, fmt.Errorf("%q is no workload: write kind/name, such as deployment/web", text)
	}
	is, known := kinds[strings.ToLower(kind)]
	if !known {
		return Ref{}, fmt.Errorf("%q: kind %q is none of those whose pods are spread: deployment, statefulset, replicaset, replicationcontroller", text, kind)
	}
	return Ref{namespace, is, name}, nil
}

// String is kind/name, as kubectl writes it.
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }

// NextPod returns a pod as the controller of a workload would make it next. It has no name that a pod of the cluster has.
func NextPod(s *snapshot.Snapshot, of Ref) (*corev1.Pod, error) {
	switch of.Kind {
	case "Deployment":
		d, err := find[*appsv1.Deployment](s, of)
		if err != nil {
			return nil, err
		}
		set := currentSet(s, d)
		if set == nil {
			return nil, fmt.Errorf("%s has no ReplicaSet: wait until its controller has made one", of)
		}
		return nextPod(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil), nil
	case "StatefulSet":
		set, err := find[*appsv1.StatefulSet](s, of)
		if err != nil {
			return nil, err
		}
		revision := map[string]string{appsv1.ControllerRevisionHashLabelKey: cmp.Or(set.Status.UpdateRevision, set.Status.CurrentRevision)}
		return nextPod(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &set.Spec.Template, revision), nil
	case "ReplicaSet":
		set, err := find[*appsv1.ReplicaSet](s, of)
		if err != nil {
			return nil, err
		}
		return nextPod(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil), nil
	default:
		rc, err := find[*corev1.ReplicationController](s, of)
		if err != nil {
			return nil, err
		}
		return nextPod(rc, corev1.SchemeGroupVersion.WithKind("ReplicationController"), rc.Spec.Template, nil), nil
	}
}

// find returns an object by its name.
func find[T interface {
	runtime.Object
	metav1.Object
}](s *snapshot.Snapshot, of Ref) (found T, err error) {
	for _, o := range snapshot.Of[T](s) {
		if o.GetNamespace() == of.Namespace && o.GetName() == of.Name {
			return o, nil
		}
	}
	return found, fmt.Errorf("there is no %s in namespace %q", of, of.Namespace)
}

// currentSet is the ReplicaSet that a Deployment makes pods by: the one with its template, or the latest while there is none.
func currentSet(s *snapshot.Snapshot, d *appsv1.Deployment) *appsv1.ReplicaSet {
	var own []*appsv1.ReplicaSet
	for _, set := range snapshot.Of[*appsv1.ReplicaSet](s) {
		if metav1.IsControlledBy(set, d) {
			own = append(own, set)
		}
	}
	if len(own) == 0 {
		return nil
	}
	for _, set := range own {
		if sameTemplate(&set.Spec.Template, &d.Spec.Template) {
			return set
		}
	}
	return slices.MaxFunc(own, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
}

// sameTemplate reports whether a ReplicaSet's template is that of its Deployment.
func sameTemplate(of, deployment *corev1.PodTemplateSpec) bool {
	own := of.DeepCopy()
	delete(own.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(own, deployment)
}

func revisionOf(set *appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(set.Annotations["deployment.kubernetes.io/revision"])
	if err != nil {
		return 0
	}
	return n
}

// nextPod returns a pod of a template, as its controller would make it.
func nextPod(owner metav1.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = owner.GetNamespace(), owner.GetName()+"-next"
	pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	if pod.Labels == nil && len(labels) > 0 {
		pod.Labels = make(map[string]string)
	}
	maps.Copy(pod.Labels, labels)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	pod.Status.Phase = corev1.PodPending
	return pod
}
