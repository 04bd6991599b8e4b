// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling"
	podgroupv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

// Workload is what SwarmKit calls a service: the pods that are spread together.
// It is comparable; two pods are of one workload if theirs are equal.
type Workload struct {
	Namespace string
	// Kind is the owner's kind and group, "Deployment.apps"; or one of the kinds below.
	Kind string
	Name string
}

// Kinds of workloads that are not owners.
const (
	// KindLabel is named by WorkloadLabel.
	KindLabel = "label"
	// KindPodGroup is named by the PodGroup label of scheduler-plugins.
	KindPodGroup = "PodGroup." + scheduling.GroupName
	// KindSchedulingGroup is named by spec.schedulingGroup.
	KindSchedulingGroup = "PodGroup.scheduling.k8s.io"
	// KindSelector is named by a Selector: that of the pods' constraints, or of the Services that select a pod alone.
	KindSelector = "selector"
	// KindPod is a pod alone. No owner has a kind in lower case.
	KindPod = "pod"
)

// String returns namespace/kind/name, for logs.
func (w Workload) String() string { return w.Namespace + "/" + w.Kind + "/" + w.Name }

// Identity is what a pod is to the algorithms.
type Identity struct {
	Workload Workload
	// Owner is the owner of a pod of a named workload, such as "Deployment.apps/web", if
	// the pod has a template hash. It is "" otherwise. Revisions are compared between pods
	// of one owner only, because a rolling update of one owner replaces no pods of another.
	Owner string
	// Revision is what SwarmKit calls spec version: it tells the pods of a rolling
	// update's new template from those of the old one. "" where a workload has none.
	Revision string
	// Preassigned pods have their node already, see the function of that name.
	Preassigned bool
	// Provisional says that the owner of the pod's ReplicaSet could not be looked
	// up, and the ReplicaSet stands in for it: the pod was seen before its
	// ReplicaSet was. Ask again when one has come, see Added.
	Provisional bool
}

// SameRevision reports whether pods of another identity count as the pods of this one
// do: of one workload, and not of an older revision of its own owner.
func (id Identity) SameRevision(of Identity) bool {
	return id.Workload == of.Workload && (id.Owner != of.Owner || id.Revision == of.Revision)
}

// Identifier tells pods' identities. It follows owners through listers, never
// through the API server.
type Identifier struct {
	replicaSets appslisters.ReplicaSetLister
	// Adopted holds the namespaces in which a ReplicaSet has got another owner: identities from before may be wrong.
	// Added holds those in which a ReplicaSet was added: a provisional identity may now be known.
	Adopted, Added Changes
}

// NewIdentifier returns an Identifier over a lister of ReplicaSets.
func NewIdentifier(replicaSets appslisters.ReplicaSetLister) *Identifier {
	return &Identifier{replicaSets: replicaSets}
}

// WatchingIdentifier returns an Identifier that follows the ReplicaSets of an informer:
// for who keeps what it tells.
func WatchingIdentifier(replicaSets appsinformers.ReplicaSetInformer) (*Identifier, error) {
	i := NewIdentifier(replicaSets.Lister())
	if err := i.Watch(replicaSets.Informer()); err != nil {
		return nil, fmt.Errorf("watching ReplicaSets: %w", err)
	}
	return i, nil
}

// Watch makes the identifier notice ReplicaSets that come, and those that change their
// owner: one that is orphaned and adopted takes its pods from one workload to another, and
// nothing happens to the pods themselves.
func (i *Identifier) Watch(replicaSets cache.SharedIndexInformer) error {
	_, err := replicaSets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if rs, ok := obj.(*appsv1.ReplicaSet); ok {
				i.Added.Note(rs.Namespace)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok := before.(*appsv1.ReplicaSet)
			a, alsoOK := after.(*appsv1.ReplicaSet)
			if ok && alsoOK && !sameOwner(metav1.GetControllerOfNoCopy(b), metav1.GetControllerOfNoCopy(a)) {
				i.Adopted.Note(a.Namespace)
			}
		},
	})
	return err
}

// sameOwner reports that two controllers make the same identity.
func sameOwner(a, b *metav1.OwnerReference) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Name == b.Name && groupKind(a) == groupKind(b)
}

// Identify tells a pod's identity. In order of precedence, the workload is named by
// WorkloadLabel, the PodGroup label of scheduler-plugins, spec.schedulingGroup, the
// controller at the top of the owner chain, or the pod is alone. The chain is
// followed from a ReplicaSet to its controller, of whatever kind; any other
// controller is the workload as it is.
//
// The revision is the hash that the pod's controller puts on all pods of one
// template. Without one it is the controller itself: a ReplicaSet, Job or
// ReplicationController has a single template in its life, and custom controllers
// are taken to have. A workload that a label names is spread as one, whatever
// owns its pods: there, pods without a hash are all of one revision, and a hash is
// the owner's, see Owner.
func (i *Identifier) Identify(pod *corev1.Pod) Identity {
	id := Identity{Workload: named(pod), Revision: templateHash(pod), Preassigned: Preassigned(pod)}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return id
	}
	isNamed := id.Workload.Kind != KindPod
	if isNamed && id.Revision == "" {
		return id
	}
	if id.Revision == "" {
		id.Revision = string(owner.UID)
	}
	owner, id.Provisional = i.top(pod.Namespace, owner)
	if isNamed {
		id.Owner = groupKind(owner) + "/" + owner.Name
	} else {
		id.Workload.Kind, id.Workload.Name = groupKind(owner), owner.Name
	}
	return id
}

// named is the workload that a pod names itself; itself, if it names none.
func named(pod *corev1.Pod) Workload {
	switch {
	case pod.Labels[WorkloadLabel] != "":
		return Workload{pod.Namespace, KindLabel, pod.Labels[WorkloadLabel]}
	case pod.Labels[podgroupv1alpha1.PodGroupLabel] != "":
		return Workload{pod.Namespace, KindPodGroup, pod.Labels[podgroupv1alpha1.PodGroupLabel]}
	case SchedulingGroup(pod) != "":
		return Workload{pod.Namespace, KindSchedulingGroup, SchedulingGroup(pod)}
	default:
		return Workload{pod.Namespace, KindPod, pod.Name}
	}
}

// top follows a ReplicaSet to its controller. It is provisional if the ReplicaSet
// is not known, or is another one of the same name. An owner of another version than
// ReplicaSets are read in is what it says it is: no lister will ever have it.
func (i *Identifier) top(namespace string, owner *metav1.OwnerReference) (top *metav1.OwnerReference, provisional bool) {
	if owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return owner, false
	}
	rs, err := i.replicaSets.ReplicaSets(namespace).Get(owner.Name)
	if err != nil || rs.UID != owner.UID {
		return owner, true
	}
	if above := metav1.GetControllerOfNoCopy(rs); above != nil {
		return above, false
	}
	return owner, false
}

func templateHash(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], pod.Labels[appsv1.ControllerRevisionHashLabelKey])
}

// SchedulingGroup names the PodGroup, of the pod's namespace, that the scheduler places the pod with, "" for none.
func SchedulingGroup(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

func isKind(owner *metav1.OwnerReference, group, kind string) bool {
	return owner.Kind == kind && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == group
}

// groupKind returns an owner's kind and group, such as "Deployment.apps". It leaves out the version, because an owner
// stays the same when its API version changes.
func groupKind(owner *metav1.OwnerReference) string {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind().String()
}
