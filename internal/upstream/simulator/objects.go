// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// newClient returns a client that lists objects, of which none ever changes. A client with a store of its own would copy each object
// three times, which is what a cluster of 50,000 pods has no room for.
func newClient(objects []runtime.Object) (*fake.Clientset, error) {
	lists := make(map[schema.GroupVersionResource][]runtime.Object)
	for _, o := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, fmt.Errorf("an object to simulate with: %w", err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
		lists[resource] = append(lists[resource], o)
	}
	client := &fake.Clientset{}
	client.AddReactor("list", "*", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		a, is := action.(clientgotesting.ListActionImpl)
		of := lists[action.GetResource()]
		if !is || len(of) == 0 {
			return false, nil, nil
		}
		if selector := a.GetListRestrictions().Fields; selector != nil && !selector.Empty() {
			var selected []runtime.Object
			for _, o := range of {
				if selector.Matches(fieldsOf(o)) {
					selected = append(selected, o)
				}
			}
			of = selected
		}
		list, err := scheme.Scheme.New(a.GetKind().GroupVersion().WithKind(a.GetKind().Kind + "List"))
		if err != nil {
			return true, nil, err
		}
		return true, list, meta.SetList(list, of)
	})
	client.AddReactor("get", "configmaps", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		a, is := action.(clientgotesting.GetAction)
		for _, o := range lists[action.GetResource()] {
			if m, ok := o.(*corev1.ConfigMap); is && ok && m.Namespace == a.GetNamespace() && m.Name == a.GetName() {
				return true, m, nil
			}
		}
		return false, nil, nil
	})
	client.AddWatchReactor("*", func(clientgotesting.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil })
	return client, nil
}

// fieldsOf are the fields of an object that the informers of a scheduler select by.
func fieldsOf(o runtime.Object) fields.Set {
	switch o := o.(type) {
	case *corev1.Pod:
		return fields.Set{"status.phase": string(o.Status.Phase), "spec.nodeName": o.Spec.NodeName, "spec.schedulerName": o.Spec.SchedulerName, "metadata.name": o.Name}
	case *corev1.Event:
		return fields.Set{"reason": o.Reason, "involvedObject.kind": o.InvolvedObject.Kind, "type": o.Type}
	default:
		return fields.Set{}
	}
}

// newFactory makes the informers of a scheduler. That of the pods, of which there are most, is shown them as they are: the client would copy
// each of them three times, which for 50,000 is a fifth of the time and of the memory.
func newFactory(client *fake.Clientset, objects []runtime.Object) informers.SharedInformerFactory {
	var running corev1.List
	for _, o := range objects {
		if pod, is := o.(*corev1.Pod); is && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			running.Items = append(running.Items, runtime.RawExtension{Object: pod})
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &running, nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}, client), &corev1.Pod{}, 0, cache.Indexers{})
	})
	return factory
}
