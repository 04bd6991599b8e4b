// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// selected is a watch of the objects that fields select: to who watches, one that no
// longer matches is deleted, as a pod that has ended is to the scheduler.
type selected struct {
	*watch.ProxyWatcher
	from     watch.Interface
	selector fields.Selector
	matched  map[types.NamespacedName]bool
	events   chan watch.Event
}

func newSelected(from watch.Interface, selector fields.Selector, there []runtime.Object) *selected {
	w := &selected{from: from, selector: selector, matched: make(map[types.NamespacedName]bool), events: make(chan watch.Event)}
	w.ProxyWatcher = watch.NewProxyWatcher(w.events)
	for _, obj := range there {
		w.matched[nameOf(obj)] = selector.Matches(fieldsOf(obj))
	}
	go w.pass()
	return w
}

// pass hands on what there is until the watch is stopped.
func (w *selected) pass() {
	defer w.from.Stop()
	for {
		select {
		case <-w.StopChan():
			return
		case e := <-w.from.ResultChan():
			name := nameOf(e.Object)
			was, is := w.matched[name], e.Type != watch.Deleted && w.selector.Matches(fieldsOf(e.Object))
			w.matched[name] = is
			switch {
			case !was && !is:
				continue
			case !was:
				e.Type = watch.Added
			case !is:
				e.Type = watch.Deleted
			}
			select {
			case <-w.StopChan():
				return
			case w.events <- e:
			}
		}
	}
}

func nameOf(obj runtime.Object) types.NamespacedName {
	switch o := obj.(type) {
	case *corev1.Pod:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	case *corev1.Event:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	}
	return types.NamespacedName{}
}

// fieldsOf are the fields that pods and events are selected by.
func fieldsOf(obj runtime.Object) fields.Set {
	switch o := obj.(type) {
	case *corev1.Pod:
		return fields.Set{"status.phase": string(o.Status.Phase), "spec.schedulerName": o.Spec.SchedulerName, "spec.nodeName": o.Spec.NodeName}
	case *corev1.Event:
		return fields.Set{"involvedObject.kind": o.InvolvedObject.Kind, "type": o.Type, "source": o.Source.Component}
	}
	return nil
}
