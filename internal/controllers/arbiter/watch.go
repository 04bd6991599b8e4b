// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
)

// follow has the ledger show the nodes and pods of a cache from now on, and returns when it shows all that there are.
func (l *Ledger) follow(ctx context.Context, from cache.Cache) error {
	nodes, err := handle(ctx, from, &corev1.Node{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { on(o, l.SetNode) },
		UpdateFunc: func(_, o any) { on(o, l.SetNode) },
		DeleteFunc: func(o any) { on(last(o), func(n *corev1.Node) { l.RemoveNode(n.Name) }) },
	})
	if err != nil {
		return err
	}
	pods, err := handle(ctx, from, &corev1.Pod{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { on(o, l.SetPod) },
		UpdateFunc: func(before, o any) {
			on(before, func(was *corev1.Pod) {
				on(o, func(is *corev1.Pod) {
					if was.UID != is.UID { // one that has gone and another of its name, which a watch may show as one change
						l.RemovePod(was.UID)
					}
					l.SetPod(is)
				})
			})
		},
		DeleteFunc: func(o any) { on(last(o), func(p *corev1.Pod) { l.RemovePod(p.UID) }) },
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), nodes, pods) {
		return ctx.Err()
	}
	return nil
}

// followPolicies has the limits of policies be known from now on. Their kinds must be installed.
func (l *Limits) followPolicies(ctx context.Context, from cache.Cache) error {
	changed := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { l.policiesChanged() }, UpdateFunc: func(any, any) { l.policiesChanged() }, DeleteFunc: func(any) { l.policiesChanged() },
	}
	objects := []client.Object{&corev1.Namespace{}} // by whose labels policies of the cluster select them
	for _, kind := range policy.Kinds {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(placementv1alpha1.SchemeGroupVersion.WithKind(kind))
		objects = append(objects, object)
	}
	for _, o := range objects {
		if _, err := handle(ctx, from, o, changed); err != nil {
			return err
		}
	}
	l.policiesChanged()
	return nil
}

// handle has a handler told of the objects of a kind, and returns what says whether it has been told of all that there were.
func handle(ctx context.Context, from cache.Cache, kind client.Object, handler toolscache.ResourceEventHandler) (toolscache.InformerSynced, error) {
	informer, err := from.GetInformer(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("watching objects like %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, fmt.Errorf("watching objects like %T: %w", kind, err)
	}
	return registration.HasSynced, nil
}

// on does something with an object, if it is what it should be.
func on[T any](o any, do func(T)) {
	if is, ok := o.(T); ok {
		do(is)
	}
}

// last is the last state that is known of an object that has gone.
func last(o any) any {
	if unknown, is := o.(toolscache.DeletedFinalStateUnknown); is {
		return unknown.Obj
	}
	return o
}
