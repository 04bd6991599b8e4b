// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Kinds are those whose statuses are written.
var Kinds = []string{ofNamespace, ofCluster}

const (
	ofNamespace = "PlacementPolicy"
	ofCluster   = "ClusterPlacementPolicy"
)

// Reconciler writes the statuses of the policies of one namespace at a time, or of the cluster: a
// policy's status depends on all others beside it.
type Reconciler struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Schedulers are the schedulerNames of the pods that policies are for.
	Schedulers []string
	Clock      clock.PassiveClock
	Flags
}

// Reconcile brings the statuses of the request's namespace up to date, or those of the policies of the cluster if it has
// none; its name says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	written, beside := ofNamespace, ofCluster
	if request.Namespace == "" {
		written, beside = beside, written
	}
	objects, err := List(ctx, r.Client, written, request.Namespace)
	if err != nil || len(objects) == 0 {
		return ctrl.Result{}, err
	}
	others, err := List(ctx, r.Client, beside, "")
	if err != nil {
		return ctrl.Result{}, err
	}
	namespaces, pods, err := r.pods(ctx, request.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	policies := make([]*clusterview.Policy, 0, len(objects)+len(others))
	for _, object := range slices.Concat(objects, others) {
		policies = append(policies, clusterview.DecodePolicy(&object))
	}
	now := metav1.NewTime(r.Clock.Now())
	var errs []error
	for i, state := range compute(policies, namespaces, pods)[:len(objects)] {
		state.missing, state.idle = r.missing(state.policy)
		errs = append(errs, r.write(ctx, &objects[i], state, now))
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// List returns the policies of a kind, of one namespace if it has a name. They come as the API server has them: of a list that is
// decoded as a whole there would be nothing if one of them cannot be.
func List(ctx context.Context, from client.Reader, kind, namespace string, more ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(placementv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := from.List(ctx, list, append(more, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	return list.Items, nil
}

// pods returns the pods that count, of one namespace if it has a name, and the labels of their namespaces.
func (r *Reconciler) pods(ctx context.Context, namespace string) (namespaces map[string]labels.Set, pods []corev1.Pod, err error) {
	var all corev1.PodList
	if err := r.Client.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range all.Items {
		if counts(&all.Items[i], r.Schedulers) {
			pods = append(pods, all.Items[i])
		}
	}
	var list corev1.NamespaceList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, nil, fmt.Errorf("listing namespaces: %w", err)
	}
	namespaces = make(map[string]labels.Set, len(list.Items))
	for i := range list.Items {
		namespaces[list.Items[i].Name] = list.Items[i].Labels
	}
	return namespaces, pods, nil
}

// write patches the status of a policy if it is another one.
func (r *Reconciler) write(ctx context.Context, object *unstructured.Unstructured, state *policyState, now metav1.Time) error {
	was := statusOf(object)
	status := state.status(was, now)
	if equality.Semantic.DeepEqual(was, status) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err == nil {
		changed := object.DeepCopy()
		changed.Object["status"] = content
		err = client.IgnoreNotFound(r.Client.Status().Patch(ctx, changed, client.MergeFrom(object)))
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// statusOf is a policy's status, empty if it cannot be decoded.
func statusOf(object *unstructured.Unstructured) (status placementv1alpha1.PlacementPolicyStatus) {
	content, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status) != nil {
		return placementv1alpha1.PlacementPolicyStatus{}
	}
	return status
}
