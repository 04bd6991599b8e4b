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
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

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
		return nextPod(s, set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil), nil
	case "StatefulSet":
		set, err := find[*appsv1.StatefulSet](s, of)
		if err != nil {
			return nil, err
		}
		pod := nextPod(s, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &set.Spec.Template, revisionLabel(set))
		number(pod, set.Name, set.Spec.VolumeClaimTemplates, nextOrdinal(s, set))
		return pod, nil
	case "ReplicaSet":
		set, err := find[*appsv1.ReplicaSet](s, of)
		if err != nil {
			return nil, err
		}
		return nextPod(s, set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil), nil
	default:
		rc, err := find[*corev1.ReplicationController](s, of)
		if err != nil {
			return nil, err
		}
		if rc.Spec.Template == nil {
			return nil, fmt.Errorf("%s has no template", of)
		}
		return nextPod(s, rc, corev1.SchemeGroupVersion.WithKind("ReplicationController"), rc.Spec.Template, nil), nil
	}
}

// revisionLabel is what a StatefulSet puts on the pods that it makes next.
func revisionLabel(set *appsv1.StatefulSet) map[string]string {
	return map[string]string{appsv1.ControllerRevisionHashLabelKey: cmp.Or(set.Status.UpdateRevision, set.Status.CurrentRevision)}
}

// nextOrdinal is the index of the pod that a StatefulSet makes next.
func nextOrdinal(s *snapshot.Snapshot, set *appsv1.StatefulSet) int {
	next := 0
	if set.Spec.Ordinals != nil {
		next = int(set.Spec.Ordinals.Start)
	}
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		if metav1.IsControlledBy(p, set) {
			if n, err := strconv.Atoi(strings.TrimPrefix(p.Name, set.Name+"-")); err == nil {
				next = max(next, n+1)
			}
		}
	}
	return next
}

// number gives a pod of a StatefulSet its index, with the volumes that go with it.
func number(pod *corev1.Pod, set string, claims []corev1.PersistentVolumeClaim, ordinal int) {
	pod.Name = fmt.Sprintf("%s-%d", set, ordinal)
	if pod.Labels == nil {
		pod.Labels = make(map[string]string)
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel], pod.Labels[appsv1.PodIndexLabel] = pod.Name, strconv.Itoa(ordinal)
	for i := range claims {
		volume := corev1.Volume{Name: claims[i].Name}
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claims[i].Name + "-" + pod.Name}
		pod.Spec.Volumes = append(slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }), volume)
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
	return found, fmt.Errorf("there is no %s in namespace %q: -n names another namespace", of, of.Namespace)
}

// currentSet is the ReplicaSet that a Deployment makes pods by: the one with its template, or the latest while there is none.
func currentSet(s *snapshot.Snapshot, d *appsv1.Deployment) *appsv1.ReplicaSet {
	var own []*appsv1.ReplicaSet
	for _, set := range snapshot.Of[*appsv1.ReplicaSet](s) {
		if metav1.IsControlledBy(set, d) {
			own = append(own, set)
		}
	}
	// Several have the same template as far as it is known here: a restart changes an annotation alone, and a snapshot has no environment.
	same := slices.DeleteFunc(slices.Clone(own), func(set *appsv1.ReplicaSet) bool { return !sameTemplate(&set.Spec.Template, &d.Spec.Template) })
	if len(same) > 0 {
		own = same
	}
	if len(own) == 0 {
		return nil
	}
	return slices.MaxFunc(own, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
}

// restartedAt is what `kubectl rollout restart` writes into a template, and `kubectl apply` leaves there.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// sameTemplate reports whether two templates are the same, but for what controllers and restarts write into them.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	plain := func(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
		t = t.DeepCopy()
		delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		delete(t.Annotations, restartedAt)
		return t
	}
	return equality.Semantic.DeepEqual(plain(a), plain(b))
}

// revision is the number that a Deployment writes into each of its ReplicaSets.
const revision = "deployment.kubernetes.io/revision"

func revisionOf(set *appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(set.Annotations[revision])
	if err != nil {
		return 0
	}
	return n
}

// nextPod returns a pod of a template, as its controller would make it and the API server take it.
func nextPod(s *snapshot.Snapshot, owner metav1.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = owner.GetNamespace(), owner.GetName()+"-next"
	pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	if pod.Labels == nil && len(labels) > 0 {
		pod.Labels = make(map[string]string)
	}
	maps.Copy(pod.Labels, labels)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	pod.Status.Phase = corev1.PodPending
	corev1defaults.SetObjectDefaults_Pod(pod) // of a template, limits are no requests yet
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = new(priorityOf(s, &pod.Spec))
	}
	return pod
}

// priorityOf is what the API server would give a pod.
func priorityOf(s *snapshot.Snapshot, spec *corev1.PodSpec) int32 {
	for _, class := range snapshot.Of[*schedulingv1.PriorityClass](s) {
		if class.Name == spec.PriorityClassName || spec.PriorityClassName == "" && class.GlobalDefault {
			return class.Value
		}
	}
	return 0
}
