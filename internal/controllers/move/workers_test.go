// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// aside is an API server with Deployments that may have one pod more than they want, and with a Move of each of their pods, which are called as the
// pods are.
type aside struct {
	*testing.T
	api   client.WithWatch
	moves []ctrl.Request
}

func newAside(t *testing.T, deployments, replicas int) *aside {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &aside{T: t}
	var all []client.Object
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon)}
	}
	for i := range deployments {
		app := fmt.Sprint("web-", i)
		labels := map[string]string{"app": app}
		d := &appsv1.Deployment{ObjectMeta: meta(app), Spec: appsv1.DeploymentSpec{Replicas: new(int32(replicas)), Strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))},
		}}}
		d.Status.Replicas, d.Status.UpdatedReplicas = int32(replicas), int32(replicas)
		set := &appsv1.ReplicaSet{ObjectMeta: meta(app + "-set"), Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		}}
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		all = append(all, d, set)
		for n := range replicas {
			p := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("%s-%d", app, n)), Spec: corev1.PodSpec{NodeName: "n"}}
			p.Labels, p.OwnerReferences = labels, []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			m := New(p, set, d, placementv1alpha1.MoveDrain, History{})
			m.UID, m.CreationTimestamp = types.UID("move-"+p.Name), metav1.NewTime(noon)
			all = append(all, p, m)
			a.moves = append(a.moves, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	a.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(&placementv1alpha1.Move{}).Build()
	return a
}

// reconciler looks at Moves by an API server.
func (a *aside) reconciler(api client.Client) *Reconciler {
	return &Reconciler{Client: api, API: api, Clock: clocktesting.NewFakeClock(noon.Add(time.Second)), meters: newMeters()}
}

// phase is that of the Move of a request.
func (a *aside) phase(request ctrl.Request) placementv1alpha1.MovePhase {
	a.Helper()
	var m placementv1alpha1.Move
	if err := a.api.Get(context.Background(), request.NamespacedName, &m); err != nil {
		a.Error(err)
	}
	return m.Status.Phase
}

// Two Moves of a Deployment with a maxSurge of 1 are looked at at once. Only one begins: who looks later sees that the other one has begun.
func TestMovesOfOneDeploymentLookedAtAtOnce(t *testing.T) {
	a := newAside(t, 1, 2)
	// Each waits until the other one has listed Moves too, and for a while at most, since it must not come to that.
	var both sync.WaitGroup
	both.Add(len(a.moves))
	listed := make(chan struct{})
	go func() { both.Wait(); close(listed) }()
	r := a.reconciler(interceptor.NewClient(a.api, interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			err := to.List(ctx, into, options...)
			if _, is := into.(*placementv1alpha1.MoveList); is {
				both.Done()
				select {
				case <-listed:
				case <-time.After(100 * time.Millisecond):
				}
			}
			return err
		},
	}))
	var looks sync.WaitGroup
	for _, request := range a.moves {
		looks.Go(func() {
			for !t.Failed() && a.phase(request) == "" {
				again, err := r.Reconcile(t.Context(), request)
				if err != nil || again.RequeueAfter == 0 {
					t.Errorf("it comes again after %s: %v", again.RequeueAfter, err)
				}
				time.Sleep(again.RequeueAfter)
			}
		})
	}
	looks.Wait()
	phases := make(map[placementv1alpha1.MovePhase]int)
	for _, request := range a.moves {
		phases[a.phase(request)]++
	}
	if phases[placementv1alpha1.MoveHandingOver] != 1 || phases[placementv1alpha1.MovePlanned] != 1 {
		t.Errorf("the Moves are %v, want one that has begun and one that has not", phases)
	}
	if n := r.sets.Len(); n != 0 {
		t.Errorf("%d ReplicaSets are still locked", n)
	}
}

// Reading one pod takes for ever, of a Deployment that has more Moves than there are workers. The Moves of all other Deployments begin. When it has
// been read, the other Moves of its Deployment are looked at too.
func TestSlowMoveHoldsUpNoOthers(t *testing.T) {
	const deployments, each = 10, workers + 1
	a := newAside(t, deployments, each)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun atomic.Int32
	all, read := make(chan struct{}), make(chan struct{})
	options := options()
	options.Reconciler = a.reconciler(interceptor.NewClient(a.api, interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, is := into.(*corev1.Pod); is && key.Name == a.moves[0].Name {
				select {
				case <-read:
				case <-ctx.Done():
				}
			}
			return to.Get(ctx, key, into, options...)
		},
		SubResourcePatch: func(ctx context.Context, to client.Client, sub string, of client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			err := to.SubResource(sub).Patch(ctx, of, patch, options...)
			m, is := of.(*placementv1alpha1.Move)
			if is && err == nil && m.Status.Phase == placementv1alpha1.MoveHandingOver && !strings.HasPrefix(m.Name, "web-0-") && begun.Add(1) == deployments-1 {
				close(all)
			}
			return err
		},
	}))
	c, err := controller.NewUnmanaged(Name, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		for _, request := range a.moves {
			queue.Add(request)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		t.Errorf("Moves of %d of %d other Deployments have begun", begun.Load(), deployments-1)
	}
	close(read)
	for begin := time.Now(); slices.ContainsFunc(a.moves[:each], func(of ctrl.Request) bool { return a.phase(of) == "" }); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Error("not all Moves of the Deployment were looked at")
			break
		}
	}
	cancel()
	running.Wait()
}
