// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
)

// handler takes in what is seen of a kind, into a map by name. Decode reads an object.
func handler[T interface{ Common() *allocations.Object }](t *Tenants, into map[string]T, decode func(*unstructured.Unstructured) T) optionalkind.Handler {
	change := func(do func() bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if do() {
			t.rebuildLocked()
		}
	}
	return optionalkind.Handler{
		Store: func(obj any) (any, error) { return obj, nil },
		Seen: func(obj any) {
			object, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return
			}
			read := decode(object)
			change(func() bool {
				old, known := into[object.GetName()]
				into[object.GetName()] = read
				return !known || !old.Common().Same(read.Common()) // else its status has changed
			})
		},
		Gone: func(key string) {
			change(func() bool { delete(into, key); return true })
		},
		None: func() {
			change(func() bool { some := len(into) > 0; clear(into); return some })
		},
		Known:    t.dirty,
		Readable: t.noteReadable,
	}
}

// rebuildLocked puts Partitions and Allocations together anew.
func (t *Tenants) rebuildLocked() {
	t.version++
	t.serial++
	t.anew = true
	tree := allocations.NewTree(valuesOf(t.partitions), valuesOf(t.allocations))
	t.claims = tree.Claims(t.labelsOf)
	t.dirty()
}

// valuesOf returns the values of a map. Whoever is given them sorts them.
func valuesOf[T any](m map[string]T) []T {
	all := make([]T, 0, len(m))
	for _, one := range m {
		all = append(all, one)
	}
	return all
}

// dirty has the order computed anew.
func (t *Tenants) dirty() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// watch follows what changes the order, and returns what says whether all of that has been seen. The informers are those of the
// scheduler.
func (t *Tenants) watch(factory informers.SharedInformerFactory) (synced []cache.InformerSynced, err error) {
	core := factory.Core().V1()
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		core.Pods().Informer():       onChange(t.podChanged),
		core.Nodes().Informer():      onChange(t.nodeChanged),
		core.Namespaces().Informer(): onChange(t.namespaceChanged),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("watching what changes the order of allocations: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// onChange calls a function for each change of an object of some type, of which there is none before it comes and after it is gone.
func onChange[T any](changed func(before, after T)) cache.ResourceEventHandlerFuncs {
	var none T
	as := func(obj any) T {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		object, _ := obj.(T)
		return object
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(none, as(obj)) },
		UpdateFunc: func(before, after any) { changed(as(before), as(after)) },
		DeleteFunc: func(obj any) { changed(as(obj), none) },
	}
}

func (t *Tenants) podChanged(before, after *corev1.Pod) {
	if before != nil && after != nil && !matters(before, after) {
		return
	}
	if after == nil && before != nil {
		t.forget(before)
	}
	t.dirty()
}

// matters reports whether a change of a pod may change the order. Most are about its containers.
func matters(before, after *corev1.Pod) bool {
	return before.Spec.NodeName != after.Spec.NodeName || before.Status.Phase != after.Status.Phase ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !allocations.SaysTheSame(before, after) ||
		before.Generation != after.Generation // its requests, perhaps
}

// forget forgets a pod that is gone.
func (t *Tenants) forget(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pod.Spec.NodeName != "" {
		t.version++
	}
	delete(t.held, pod.UID)
	delete(t.retry, pod.UID)
	delete(t.tried, pod.UID)
	t.waitsNoMoreLocked(pod.UID)
	for _, w := range t.windows {
		w.leave(pod.UID)
	}
}

func (t *Tenants) nodeChanged(before, after *corev1.Node) {
	if before != nil && after != nil && maps.Equal(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return
	}
	t.mu.Lock()
	t.version++
	// Who found no place may find one there. The queue is not asked to look: it would ask about each pod that is held, and a scheduler that
	// starts beside thousands of them hears of thousands of nodes.
	t.anew = t.anew || after != nil && t.anyTriedLocked() && t.claims.Opens(before, after)
	t.mu.Unlock()
	t.dirty()
}

func (t *Tenants) namespaceChanged(before, after *corev1.Namespace) {
	if before != nil && after != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims = t.claims.Claims(t.labelsOf)
	t.anew = t.anew || before != nil && after != nil // one that comes or goes has no pods that found no place
	t.dirty()
}
