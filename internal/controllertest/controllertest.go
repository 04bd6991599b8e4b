// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest is an API server that a test plays for a controller, with the
// objects that most of these tests begin with. It knows no controller and has no cases.
package controllertest

import (
	"errors"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Rig is an API server that a test plays, and a clock that it sets. What the API server
// refuses ends the test.
type Rig struct {
	testing.TB
	Server client.WithWatch
	Time   *clocktesting.FakeClock
	// Said are the Events that the controller writes.
	Said *events.FakeRecorder
}

// kinds are those that controllers read.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), placementv1alpha1.AddToScheme(scheme))
})

// Builder is of an API server with objects, which knows all these kinds.
func Builder(t rapid.TB, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme, err := kinds()
	Must(t, err)
	// The tracker that is made otherwise keeps managed fields, for which it looks through all kinds with each request.
	tracker := clientgotesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithObjects(objects...).WithStatusSubresource(
		&placementv1alpha1.Move{}, &placementv1alpha1.Partition{}, &placementv1alpha1.Allocation{},
		&placementv1alpha1.PlacementPolicy{}, &placementv1alpha1.ClusterPlacementPolicy{},
	)
}

// New is a rig at a time, with what is built.
func New(t testing.TB, at time.Time, b *fake.ClientBuilder) *Rig {
	return &Rig{TB: t, Server: b.Build(), Time: clocktesting.NewFakeClock(at), Said: events.NewFakeRecorder(1000)}
}

// Must ends a test, or one case of a property, that cannot go on.
func Must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must ends the test if there is an error.
func (r *Rig) Must(err error) {
	r.Helper()
	Must(r, err)
}

// Create makes objects.
func (r *Rig) Create(objects ...client.Object) {
	r.Helper()
	for _, o := range objects {
		r.Must(r.Server.Create(r.Context(), o))
	}
}

// Delete deletes objects, of which no more is needed than their names.
func (r *Rig) Delete(objects ...client.Object) {
	r.Helper()
	for _, o := range objects {
		r.Must(r.Server.Delete(r.Context(), o))
	}
}

// Get reads an object by its name.
func (r *Rig) Get(o client.Object) {
	r.Helper()
	r.Must(r.Server.Get(r.Context(), client.ObjectKeyFromObject(o), o))
}

// Change reads an object by its name, and writes it and its status when they are changed.
func Change[T client.Object](r *Rig, o T, change func(T)) {
	r.Helper()
	r.Get(o)
	change(o)
	status, _ := o.DeepCopyObject().(T)
	r.Must(r.Server.Update(r.Context(), o))
	status.SetResourceVersion(o.GetResourceVersion())
	r.Must(r.Server.Status().Update(r.Context(), status))
}

// Moves are all that there are.
func (r *Rig) Moves() []placementv1alpha1.Move {
	r.Helper()
	var moves placementv1alpha1.MoveList
	r.Must(r.Server.List(r.Context(), &moves))
	return moves.Items
}

// Told are the Events that were written since it was asked last.
func (r *Rig) Told() (all []string) {
	for len(r.Said.Events) > 0 {
		all = append(all, <-r.Said.Events)
	}
	return all
}

// Named is what an object of namespace ns is called, by name and UID.
func Named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}
}

// OwnedBy is the controller of an object, of the API group apps.
func OwnedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
}

// Deployment is one with so many replicas, and so many more in a rolling update. Its
// ReplicaSet is NAME-1.
func Deployment(name string, replicas, surge int32) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	d := &appsv1.Deployment{ObjectMeta: Named(name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(surge))},
	}}}
	set := &appsv1.ReplicaSet{ObjectMeta: Named(name + "-1")}
	set.OwnerReferences = OwnedBy("Deployment", name)
	return d, set
}

// Budget lets so many pods of an app be evicted, and of all apps if that is "".
func Budget(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: Named(name), Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	if app != "" {
		b.Spec.Selector.MatchLabels = map[string]string{"app": app}
	}
	b.Status.DisruptionsAllowed = allowed
	return b
}

// WantInvalid fails the test unless options are valid, and each of the changes makes them
// invalid for just this reason.
func WantInvalid[O interface{ Validate() error }](t testing.TB, options func() O, changes map[string]func(*O)) {
	t.Helper()
	Must(t, options().Validate())
	for want, change := range changes {
		o := options()
		change(&o)
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
