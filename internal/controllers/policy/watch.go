// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// gatherFor is how long pods of a namespace are gathered before its policies' numbers
// are written. A rolling update would otherwise write a status for every pod. It also
// bounds how fast two controllers that know other schedulers overwrite each other.
const gatherFor = time.Second

// gatherForCluster is the same for the policies of the cluster, for which all pods are counted.
const gatherForCluster = 5 * time.Second

// Name is the controller's name in logs and metrics.
const Name = "placementpolicy"

// AddTo adds the controller to a manager.
func (r *Reconciler) AddTo(manager ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(manager).Named(Name).
		Watches(object(ofNamespace), after(0), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(object(ofNamespace), after(gatherFor), builder.WithPredicates(statusChanges())).
		Watches(object(ofCluster), r.afterAll(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(object(ofCluster), after(gatherForCluster), builder.WithPredicates(statusChanges())).
		Watches(&corev1.Namespace{}, after(gatherFor), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&corev1.Pod{}, after(gatherFor), builder.WithPredicates(r.podMatters())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return nil
}

// object stands for all of a kind.
func object(kind string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(placementv1alpha1.SchemeGroupVersion.WithKind(kind))
	return u
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// after asks for the namespace of whatever an event is about, some time later, and for the cluster.
// Events that come in the meantime ask for nothing more.
func after(delay time.Duration) handler.EventHandler {
	return eachEvent(func(_ context.Context, o client.Object, q queue) {
		namespace := o.GetNamespace()
		if _, is := o.(*corev1.Namespace); is {
			namespace = o.GetName()
		}
		if namespace != "" {
			q.AddAfter(of(namespace), delay)
		}
		q.AddAfter(of(""), gatherForCluster)
	})
}

// afterAll asks for the cluster and for all namespaces that have policies: what comes before these may have changed.
func (r *Reconciler) afterAll() handler.EventHandler {
	return eachEvent(func(ctx context.Context, _ client.Object, q queue) {
		q.AddAfter(of(""), gatherFor)
		policies, err := List(ctx, r.Client, ofNamespace, "")
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Asking which namespaces have policies")
		}
		for i := range policies {
			q.AddAfter(of(policies[i].GetNamespace()), gatherFor)
		}
	})
}

func of(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace}}
}

// eachEvent asks alike whatever happens to an object.
func eachEvent(ask func(context.Context, client.Object, queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { ask(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { ask(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { ask(ctx, e.Object, q) },
	}
}

// statusChanges lets the events pass that change a status, also those of this controller's own
// writes. A status may be computed from a cache that does not have the last one yet, or be
// overwritten by a controller that was about to stop: the next look, at the status as it is, finds
// that, or that there is nothing to write.
func statusChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*unstructured.Unstructured)
			after, alsoOK := e.ObjectNew.(*unstructured.Unstructured)
			return ok && alsoOK && !equality.Semantic.DeepEqual(before.Object["status"], after.Object["status"])
		},
	}
}

// podMatters lets the events pass that change a number: most updates of a pod are
// about its containers.
func (r *Reconciler) podMatters() predicate.Predicate {
	is := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return !ok || counts(pod, r.Schedulers)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return is(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return is(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return is(e.ObjectOld) != is(e.ObjectNew) || (is(e.ObjectNew) &&
				(!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())))
		},
	}
}

// TrimNamespace leaves of a namespace its name and labels, for a cache.
func TrimNamespace(obj any) (any, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels}}, nil
}

// Trim leaves of a pod what a status is computed from, some hundred bytes, for a cache. A cache may trim what it has trimmed before.
func Trim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	annotations := make(map[string]string)
	if clusterview.AsksForLevels(pod) {
		annotations[clusterview.PlacementAnnotation] = "" // as good as constraints, and shorter
	}
	if _, there := pod.Annotations[clusterview.DomainLimitsAnnotation]; there {
		annotations[clusterview.DomainLimitsAnnotation] = ""
	}
	// What a pod says of it that is not bound is not the scheduler's word.
	if placedBy, there := pod.Annotations[clusterview.PlacedByAnnotation]; there && placedBy != "" && pod.Spec.NodeName != "" {
		annotations[clusterview.PlacedByAnnotation] = clusterview.Trimmed(placedBy)
	}
	// What a Move may leave.
	for _, key := range []string{clusterview.CostBeforeMoveAnnotation, clusterview.RemovedForMoveAnnotation, clusterview.MadeEvictableAnnotation} {
		if value, there := pod.Annotations[key]; there {
			annotations[key] = value
		}
	}
	var owners []metav1.OwnerReference
	if owner := metav1.GetControllerOf(pod); owner != nil {
		owners = append(owners, *owner)
	}
	// By its claims is known whether another pod can be ready beside it before it goes off a node.
	var volumes []corev1.Volume
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			volumes = append(volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		}
	}
	// A disruption budget that blocks keeps those that are ready.
	var ready []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			ready = append(ready, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: annotations, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			OwnerReferences: owners,
		},
		Spec:   corev1.PodSpec{SchedulerName: pod.Spec.SchedulerName, NodeName: pod.Spec.NodeName, Volumes: volumes, Tolerations: pod.Spec.Tolerations},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: ready},
	}, nil
}
