// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Workload is a workload as a manifest has it.
type Workload struct {
	Ref
	// Replicas is below 0 if the manifest does not say.
	Replicas int
	// owner makes the pods: for a Deployment set, the ReplicaSet that it would make.
	owner    metav1.Object
	set      *appsv1.ReplicaSet
	template corev1.PodTemplateSpec
	revision map[string]string
	isPod    bool
	// claims are the templates of a StatefulSet's volumes, and firstOrdinal is the index of its first pod.
	claims       []corev1.PersistentVolumeClaim
	firstOrdinal int
	// annotations are those of the object itself, and not of its template.
	annotations map[string]string
}

// Manifest is what of a manifest decides where pods go.
type Manifest struct {
	Workloads []Workload
	// Policies are its PlacementPolicies and ClusterPlacementPolicies.
	Policies []*unstructured.Unstructured
	// Namespaces are those that it makes, and Claims the volume claims.
	Namespaces []*corev1.Namespace
	Claims     []*corev1.PersistentVolumeClaim
	// Others are the kinds of all else, which is not read.
	Others []string
}

// ReadManifest reads Deployments, StatefulSets, ReplicaSets, Pods and policies. Those without a namespace are in the one given.
func ReadManifest(in io.Reader, namespace string) (*Manifest, error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	decode := serializer.NewCodecFactory(snapshot.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	m := &Manifest{}
	for n := 1; ; n++ {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		if err := m.add(decode, raw.Raw, namespace); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
	return m, nil
}

// Empty reports that there is nothing to be placed, and nothing that says how.
func (m *Manifest) Empty() bool { return len(m.Workloads)+len(m.Policies) == 0 }

// add reads a document.
func (m *Manifest) add(decode runtime.Decoder, text []byte, namespace string) error {
	o, kind, err := decode.Decode(text, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err) && kind.GroupVersion() == placementv1alpha1.SchemeGroupVersion && strings.HasSuffix(kind.Kind, "PlacementPolicy"):
		policy := &unstructured.Unstructured{}
		if err := policy.UnmarshalJSON(text); err != nil {
			return err
		}
		if kind.Kind == "PlacementPolicy" && policy.GetNamespace() == "" {
			policy.SetNamespace(namespace)
		}
		m.Policies = append(m.Policies, policy)
		return nil
	case runtime.IsNotRegisteredError(err):
		m.Others = append(m.Others, kind.Kind)
		return nil
	case err != nil:
		return err
	}
	if object, is := o.(metav1.Object); is && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	switch o := o.(type) {
	case *corev1.List:
		for i := range o.Items {
			if err := m.add(decode, o.Items[i].Raw, namespace); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	case *corev1.Namespace:
		o.Namespace = ""
		corev1defaults.SetObjectDefaults_Namespace(o) // the label with its name
		m.Namespaces = append(m.Namespaces, o)
		return nil
	case *corev1.PersistentVolumeClaim:
		m.Claims = append(m.Claims, o)
		return nil
	}
	w, is := workloadOf(o)
	if !is {
		m.Others = append(m.Others, kind.Kind)
		return nil
	}
	if w.Name == "" {
		return fmt.Errorf("a %s needs metadata.name", kind.Kind)
	}
	m.Workloads = append(m.Workloads, w)
	return nil
}

// beside are the objects of a cluster with those of the manifest: a namespace that is there gets labels, and a claim that is there stays.
func (m *Manifest) beside(s *snapshot.Snapshot, objects []runtime.Object) []runtime.Object {
	all := slices.Clone(objects)
	for _, made := range m.Namespaces {
		at := slices.IndexFunc(all, func(o runtime.Object) bool { is, ok := o.(*corev1.Namespace); return ok && is.Name == made.Name })
		if at < 0 {
			all = append(all, made)
			continue
		}
		there := all[at].DeepCopyObject().(*corev1.Namespace)
		if there.Labels == nil {
			there.Labels = make(map[string]string)
		}
		maps.Copy(there.Labels, made.Labels)
		all[at] = there
	}
	for _, made := range m.Claims {
		if !slices.ContainsFunc(all, func(o runtime.Object) bool {
			is, ok := o.(*corev1.PersistentVolumeClaim)
			return ok && is.Namespace == made.Namespace && is.Name == made.Name
		}) {
			all = append(all, arriving(s, made)...)
		}
	}
	return all
}

// Merge adds what another manifest has.
func (m *Manifest) Merge(other *Manifest) {
	m.Workloads, m.Policies = append(m.Workloads, other.Workloads...), append(m.Policies, other.Policies...)
	m.Namespaces, m.Claims, m.Others = append(m.Namespaces, other.Namespaces...), append(m.Claims, other.Claims...), append(m.Others, other.Others...)
}

func workloadOf(o runtime.Object) (Workload, bool) {
	var w Workload
	switch o := o.(type) {
	case *appsv1.Deployment:
		w = Workload{Replicas: int(ptr.Deref(o.Spec.Replicas, -1)), template: o.Spec.Template}
		// The ReplicaSet that the Deployment would make.
		w.set = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name + "-simulated", UID: types.UID(o.Namespace + "/" + o.Name + "-simulated"),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		}}
		w.owner, w.revision = w.set, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "simulated"}
		w.Ref = Ref{o.Namespace, "Deployment", o.Name}
	case *appsv1.StatefulSet:
		o.UID = cmp.Or(o.UID, types.UID(o.Namespace+"/"+o.Name)) // the scheduler tells sets apart by it
		w = Workload{Ref: Ref{o.Namespace, "StatefulSet", o.Name}, Replicas: int(ptr.Deref(o.Spec.Replicas, -1)), template: o.Spec.Template, owner: o}
		w.revision = map[string]string{appsv1.ControllerRevisionHashLabelKey: "simulated"}
		if w.claims = o.Spec.VolumeClaimTemplates; o.Spec.Ordinals != nil {
			w.firstOrdinal = int(o.Spec.Ordinals.Start)
		}
	case *appsv1.ReplicaSet:
		w = Workload{Ref: Ref{o.Namespace, "ReplicaSet", o.Name}, Replicas: int(ptr.Deref(o.Spec.Replicas, -1)), template: o.Spec.Template, owner: o}
	case *corev1.Pod:
		w = Workload{Ref: Ref{o.Namespace, "Pod", o.Name}, Replicas: 1, template: corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, owner: o, isPod: true}
	default:
		return w, false
	}
	if m, is := o.(metav1.Object); is && !w.isPod {
		w.annotations = m.GetAnnotations()
	}
	template := corev1.PodTemplate{Template: w.template}
	corev1defaults.SetObjectDefaults_PodTemplate(&template)
	w.template = template.Template
	return w, true
}

// maxPods bounds the pods of a simulation.
const maxPods = 100000

// wanted is what a cluster lacks of a workload.
type wanted struct {
	pods []*corev1.Pod
	// objects are those that the pods' controllers would make beside them.
	objects []runtime.Object
	// old counts the pods of revisions before, which a rollout would remove.
	old int
}

// lacks returns what a cluster lacks of a workload. Replicas below 0 are those of the manifest, or of the cluster where that says nothing.
func (w *Workload) lacks(s *snapshot.Snapshot, replicas int) (*wanted, error) {
	next, made := w.next(s)
	out := &wanted{}
	if made != nil {
		out.objects = append(out.objects, made)
	}
	has := 0
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		if p.Namespace != w.Namespace || p.DeletionTimestamp != nil || ended(p) {
			continue
		}
		switch {
		case w.isPod:
			if p.Name == w.Name {
				has++
			}
		case sameOwner(p, next) && p.Labels[appsv1.ControllerRevisionHashLabelKey] == next.Labels[appsv1.ControllerRevisionHashLabelKey]:
			has++
		case w.owns(s, p):
			out.old++
		}
	}
	if w.Kind == "StatefulSet" {
		has, out.old = has+out.old, 0 // it replaces its pods one by one, each by the next of its name
	}
	if replicas < 0 || w.isPod {
		replicas = w.Replicas
	}
	if replicas < 0 {
		replicas = w.replicasIn(s)
	}
	if replicas < has {
		return nil, fmt.Errorf("%s has %d pods, and is to have %d: which ones go when a workload shrinks is not simulated", w.Ref, has, replicas)
	}
	if replicas-has > maxPods {
		return nil, fmt.Errorf("%s is to have %d pods: simulate %d at most", w.Ref, replicas, maxPods)
	}
	ordinal := w.ordinal(s)
	for i := range replicas - has {
		p := next.DeepCopy()
		switch {
		case w.Kind == "StatefulSet":
			number(p, w.Name, w.claims, ordinal+i)
		case !w.isPod:
			p.Name = fmt.Sprintf("%s-simulated-%d", w.Name, has+i+1)
		}
		p.UID = types.UID(w.Namespace + "/" + p.Name)
		out.pods = append(out.pods, p)
		out.objects = append(out.objects, claimsOf(s, p, w.claims)...)
	}
	return out, nil
}

// ordinal is the index of the next pod of a StatefulSet.
func (w *Workload) ordinal(s *snapshot.Snapshot) int {
	if there, err := find[*appsv1.StatefulSet](s, w.Ref); err == nil {
		return nextOrdinal(s, there)
	}
	return w.firstOrdinal
}

// replicasIn is how many pods the cluster's own object wants, 1 if there is none: that of a workload with an autoscaler.
func (w *Workload) replicasIn(s *snapshot.Snapshot) int {
	switch w.Kind {
	case "Deployment":
		if there, err := find[*appsv1.Deployment](s, w.Ref); err == nil {
			return int(ptr.Deref(there.Spec.Replicas, 1))
		}
	case "StatefulSet":
		if there, err := find[*appsv1.StatefulSet](s, w.Ref); err == nil {
			return int(ptr.Deref(there.Spec.Replicas, 1))
		}
	case "ReplicaSet":
		if there, err := find[*appsv1.ReplicaSet](s, w.Ref); err == nil {
			return int(ptr.Deref(there.Spec.Replicas, 1))
		}
	}
	return 1
}

// owns reports whether a pod is of a workload, of whatever revision.
func (w *Workload) owns(s *snapshot.Snapshot, p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || w.isPod {
		return false
	}
	if w.Kind == "Deployment" {
		set, err := find[*appsv1.ReplicaSet](s, Ref{w.Namespace, "ReplicaSet", owner.Name})
		if err != nil || owner.Kind != "ReplicaSet" {
			return false
		}
		if owner = metav1.GetControllerOfNoCopy(set); owner == nil {
			return false
		}
	}
	return owner.Kind == w.Kind && owner.Name == w.Name
}

func sameOwner(a, b *corev1.Pod) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return x != nil && y != nil && x.UID == y.UID
}

// next is a pod of a workload as its controller would make it in a cluster, and the ReplicaSet or StatefulSet that it is of if the cluster has none
// such and the scheduler reads it.
func (w *Workload) next(s *snapshot.Snapshot) (pod *corev1.Pod, made runtime.Object) {
	kind, owner, labels := "ReplicaSet", w.owner, w.revision
	switch w.Kind {
	case "Deployment":
		there, err := find[*appsv1.Deployment](s, w.Ref)
		var current *appsv1.ReplicaSet
		if err == nil {
			current = currentSet(s, there)
		}
		if current != nil && sameTemplate(&current.Spec.Template, w.trimmed()) {
			owner, labels = current, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: current.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]}
			break
		}
		made = w.set
		if err == nil { // a new revision of one that is there
			w.set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(there, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		}
	case "StatefulSet":
		kind = "StatefulSet"
		if there, err := find[*appsv1.StatefulSet](s, w.Ref); err == nil {
			if owner = there; sameTemplate(&there.Spec.Template, w.trimmed()) {
				labels = revisionLabel(there)
			}
		} else {
			made, _ = w.owner.(runtime.Object)
		}
	case "ReplicaSet":
		if there, err := find[*appsv1.ReplicaSet](s, w.Ref); err == nil {
			owner = there
		}
	}
	pod = nextPod(s, owner, appsv1.SchemeGroupVersion.WithKind(kind), &w.template, labels)
	if w.isPod {
		pod.OwnerReferences, pod.Name = nil, w.Name
	}
	pod.Namespace = w.Namespace
	if w.Kind == "StatefulSet" {
		number(pod, w.Name, w.claims, w.ordinal(s))
	}
	return pod, made
}

// PodOf is a pod of a workload, for whoever looks at nothing but what it asks for.
func PodOf(w *Workload) *corev1.Pod {
	pod, _ := w.next(&snapshot.Snapshot{})
	return pod
}

// trimmed is the template as a snapshot would have it.
func (w *Workload) trimmed() *corev1.PodTemplateSpec {
	s := snapshot.Snapshot{}
	s.Add(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: *w.template.DeepCopy()}})
	return &s.Objects[0].(*appsv1.Deployment).Spec.Template
}
