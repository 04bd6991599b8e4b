// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Workload is a workload as a manifest has it.
type Workload struct {
	Ref
	Replicas int
	owner    metav1.Object
	template corev1.PodTemplateSpec
	revision map[string]string
	isPod    bool
}

// Workloads reads the workloads of a manifest: Deployments, StatefulSets, ReplicaSets and Pods. Other objects are named, and not read. Those
// without a namespace are in the one given.
func Workloads(in io.Reader, namespace string) (all []Workload, others []string, err error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	decode := serializer.NewCodecFactory(snapshot.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	for n := 1; ; n++ {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		o, kind, err := decode.Decode(raw.Raw, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			others = append(others, kind.Kind)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		if m, is := o.(metav1.Object); is && m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		w, is := workloadOf(o)
		if !is {
			others = append(others, kind.Kind)
			continue
		}
		if w.Name == "" {
			return nil, nil, fmt.Errorf("document %d: a %s needs metadata.name", n, kind.Kind)
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, others, errors.New("no Deployment, StatefulSet, ReplicaSet or Pod is in it")
	}
	return all, others, nil
}

func workloadOf(o runtime.Object) (Workload, bool) {
	var w Workload
	switch o := o.(type) {
	case *appsv1.Deployment:
		w = Workload{Replicas: int(ptr.Deref(o.Spec.Replicas, 1)), template: o.Spec.Template}
		// The ReplicaSet that the Deployment would make.
		w.owner = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name + "-simulated", UID: types.UID(o.Namespace + "/" + o.Name + "-simulated"),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		}}
		w.revision = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "simulated"}
		w.Ref = Ref{o.Namespace, "Deployment", o.Name}
	case *appsv1.StatefulSet:
		w = Workload{Ref: Ref{o.Namespace, "StatefulSet", o.Name}, Replicas: int(ptr.Deref(o.Spec.Replicas, 1)), template: o.Spec.Template, owner: o}
		w.revision = map[string]string{appsv1.ControllerRevisionHashLabelKey: "simulated"}
	case *appsv1.ReplicaSet:
		w = Workload{Ref: Ref{o.Namespace, "ReplicaSet", o.Name}, Replicas: int(ptr.Deref(o.Spec.Replicas, 1)), template: o.Spec.Template, owner: o}
	case *corev1.Pod:
		w = Workload{Ref: Ref{o.Namespace, "Pod", o.Name}, Replicas: 1, template: corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, owner: o, isPod: true}
	default:
		return w, false
	}
	template := corev1.PodTemplate{Template: w.template}
	corev1defaults.SetObjectDefaults_PodTemplate(&template)
	w.template = template.Template
	return w, true
}

// pods are those that a cluster lacks of a workload, and the ReplicaSet that they are of if the cluster has none such.
func (w *Workload) pods(s *snapshot.Snapshot, replicas int) (pods []*corev1.Pod, set *appsv1.ReplicaSet, err error) {
	kind, owner, labels := "ReplicaSet", w.owner, maps.Clone(w.revision)
	switch w.Kind {
	case "Deployment":
		there, err := find[*appsv1.Deployment](s, w.Ref)
		var current *appsv1.ReplicaSet
		if err == nil {
			current = currentSet(s, there)
		}
		if current != nil && sameTemplate(&current.Spec.Template, w.trimmed()) {
			owner, labels = current, nil
			for key, value := range current.Spec.Template.Labels {
				if key == appsv1.DefaultDeploymentUniqueLabelKey {
					labels = map[string]string{key: value}
				}
			}
		} else {
			set = w.owner.(*appsv1.ReplicaSet)
			if err == nil { // a new revision of one that is there
				set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(there, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
			}
		}
	case "StatefulSet":
		kind = "StatefulSet"
		if there, err := find[*appsv1.StatefulSet](s, w.Ref); err == nil {
			owner = there
		}
	case "ReplicaSet":
		if there, err := find[*appsv1.ReplicaSet](s, w.Ref); err == nil {
			owner = there
		}
	}
	has := 0
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		if is := metav1.GetControllerOfNoCopy(p); is != nil && is.UID == owner.GetUID() && owner.GetUID() != "" && p.DeletionTimestamp == nil && !ended(p) {
			has++
		}
	}
	if replicas < has {
		return nil, nil, fmt.Errorf("%s has %d pods, and is to have %d: which ones go when a workload shrinks is not simulated", w.Ref, has, replicas)
	}
	priority := priorityOf(s, &w.template.Spec)
	for i := has; i < replicas; i++ {
		p := nextPod(owner, appsv1.SchemeGroupVersion.WithKind(kind), &w.template, labels)
		p.Name = fmt.Sprintf("%s-simulated-%d", w.Name, i+1)
		if w.isPod {
			p.OwnerReferences, p.Name = nil, w.Name
		}
		p.UID, p.Namespace = types.UID(w.Namespace+"/"+p.Name), w.Namespace
		corev1defaults.SetObjectDefaults_Pod(p) // of a template, limits are no requests yet
		p.Spec.Priority = ptr.To(cmp.Or(ptr.Deref(p.Spec.Priority, 0), priority))
		pods = append(pods, p)
	}
	return pods, set, nil
}

// trimmed is the template as a snapshot would have it.
func (w *Workload) trimmed() *corev1.PodTemplateSpec {
	s := snapshot.Snapshot{}
	s.Add(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: *w.template.DeepCopy()}})
	return &s.Objects[0].(*appsv1.Deployment).Spec.Template
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
