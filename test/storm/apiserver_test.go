// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// store is client-go's, with what a scheduler relies on beyond it: every change has a
// version of its own, and one of an object that has changed meanwhile is refused.
type store struct {
	clientgotesting.ObjectTracker
	version atomic.Int64
}

func (s *store) stamp(obj runtime.Object) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	object.SetResourceVersion(strconv.FormatInt(s.version.Add(1), 10))
	return nil
}

// Create adds an object.
func (s *store) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	if err := s.stamp(obj); err != nil {
		return err
	}
	return s.ObjectTracker.Create(gvr, obj, ns, opts...)
}

// Update replaces an object that is still as the caller has seen it.
func (s *store) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	old, err := s.Get(gvr, ns, object.GetName())
	if err != nil {
		return err
	}
	if was, err := meta.Accessor(old); err != nil || was.GetResourceVersion() != object.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), object.GetName(), fmt.Errorf("it has changed: %w", err))
	}
	if err := s.stamp(obj); err != nil {
		return err
	}
	return s.ObjectTracker.Update(gvr, obj, ns, opts...)
}

// Patch replaces an object by what a patch has made of it.
func (s *store) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	if err := s.stamp(obj); err != nil {
		return err
	}
	return s.ObjectTracker.Patch(gvr, obj, ns, opts...)
}

// apiServer is one that the test plays. Each call of its client is one transaction.
type apiServer struct {
	*fake.Clientset
	// Server answers who reads our own kinds. It is nil where they are read without a network.
	*httptest.Server
	store *store
	// closing is closed when the server is to end: it waits for nobody who still watches.
	closing chan struct{}
	// away has it not answer about our own kinds.
	away atomic.Bool
	traffic

	mu    sync.Mutex // guards bound, twice
	bound map[string]string
	twice []string
}

func newAPIServer() *apiServer {
	s := newOfflineAPIServer()
	s.Server = httptest.NewServer(s.ourKinds())
	return s
}

// newOfflineAPIServer is one without a network, whose requests are function calls.
func newOfflineAPIServer() *apiServer {
	s := &apiServer{
		Clientset: &fake.Clientset{},
		store:     &store{ObjectTracker: clientgotesting.NewObjectTracker(known, codecs.UniversalDecoder())},
		closing:   make(chan struct{}),
		bound:     make(map[string]string),
		traffic:   traffic{lost: sets.New[string](), asked: sets.New[string]()},
	}
	s.AddReactor("list", "*", s.list)
	s.AddReactor("create", "pods", s.bind)
	s.AddReactor("*", "*", clientgotesting.ObjectReaction(s.store))
	s.AddWatchReactor("*", func(action clientgotesting.Action) (bool, watch.Interface, error) {
		a := action.(clientgotesting.WatchActionImpl)
		w, err := s.store.Watch(a.GetResource(), a.GetNamespace(), a.ListOptions)
		if err != nil {
			return false, nil, err
		}
		if selector := a.GetWatchRestrictions().Fields; selector != nil && !selector.Empty() {
			there, err := s.objects(a.GetResource(), a.GetResource().GroupVersion().WithKind(kindOf[a.GetResource().Resource]))
			if err != nil {
				return false, nil, err
			}
			w = newSelected(w, selector, there)
		}
		return true, w, nil
	})
	return s
}

func (s *apiServer) close() {
	close(s.closing)
	if s.Server != nil {
		s.Close()
	}
}

// kindOf are the kinds that somebody selects by fields.
var kindOf = map[string]string{"pods": "Pod", "events": "Event"}

// list is a list by fields, which the store knows nothing of.
func (s *apiServer) list(action clientgotesting.Action) (bool, runtime.Object, error) {
	a := action.(clientgotesting.ListActionImpl)
	selector := a.GetListRestrictions().Fields
	if selector == nil || selector.Empty() {
		return false, nil, nil
	}
	list, err := s.store.List(a.GetResource(), a.GetKind(), a.GetNamespace(), a.ListOptions)
	if err != nil {
		return true, nil, err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return true, nil, err
	}
	var selected []runtime.Object
	for _, obj := range all {
		if selector.Matches(fieldsOf(obj)) {
			selected = append(selected, obj)
		}
	}
	return true, list, meta.SetList(list, selected)
}

func (s *apiServer) objects(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind) ([]runtime.Object, error) {
	list, err := s.store.List(gvr, gvk, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	return meta.ExtractList(list)
}

// bind gives a pod its node and the annotations of the binding, as the API server does: once, and not to another of its name.
func (s *apiServer) bind(action clientgotesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clientgotesting.CreateAction).GetObject().(*corev1.Binding)
	obj, err := s.store.Get(pods, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod.UID != binding.UID || pod.Spec.NodeName != "" {
		if node, ok := s.bound[string(binding.UID)]; ok {
			s.twice = append(s.twice, fmt.Sprintf("%s to %s and %s", binding.Name, node, binding.Target.Name))
		}
		return true, nil, apierrors.NewConflict(pods.GroupResource(), binding.Name, fmt.Errorf("it is bound to %q", pod.Spec.NodeName))
	}
	s.bound[string(pod.UID)] = binding.Target.Name
	pod.Spec.NodeName = binding.Target.Name
	for key, value := range binding.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
	podutil.UpdatePodCondition(&pod.Status, &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	return true, binding, s.store.Update(pods, pod, pod.Namespace)
}

// bindings are the nodes that pods were bound to, by UID, and what was to be bound twice.
func (s *apiServer) bindings() (bound map[string]string, twice []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.bound), s.twice
}

// allPods are the pods there are.
func (s *apiServer) allPods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := s.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	return list.Items
}

// collectGarbage deletes the pods whose ReplicaSet is gone, as a cluster does sooner or
// later. Whose they were is known to who has seen it, and to nobody who starts now.
func (s *apiServer) collectGarbage(t *testing.T) {
	t.Helper()
	for _, pod := range s.allPods(t) {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil {
			continue
		}
		_, err := s.AppsV1().ReplicaSets(pod.Namespace).Get(t.Context(), owner.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			err = s.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

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
