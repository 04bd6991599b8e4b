// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
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
	a := &aside{T: t}
	var all []client.Object
	for i := range deployments {
		app := fmt.Sprint("web-", i)
		labels := map[string]string{"app": app}
		d, set := controllertest.Deployment(app, int32(replicas), 1)
		d.Status.Replicas, d.Status.UpdatedReplicas = int32(replicas), int32(replicas)
		set.Spec = appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}
		all = append(all, d, set)
		for n := range replicas {
			p := podOf(fmt.Sprintf("%s-%d", app, n), "ReplicaSet", set.Name)
			p.Labels, p.Spec.NodeName = labels, "n"
			m := New(p, set, d, placementv1alpha1.MoveDrain, History{})
			m.UID, m.CreationTimestamp = types.UID("move-"+p.Name), metav1.NewTime(noon)
			all = append(all, p, m)
			a.moves = append(a.moves, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	a.api = controllertest.Builder(t, all...).Build()
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
	controllertest.Must(t, err)
	controllertest.Must(t, c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		for _, request := range a.moves {
			queue.Add(request)
		}
		return nil
	})))
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

// A Move that waits for a node comes after those that are under way, and the more there are the less often it is looked at. When the node answers
// it comes with the others again.
func TestMovesThatWaitHoldUpNoOthers(t *testing.T) {
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}
	silent.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.NewTime(noon))}}
	for name, tc := range map[string]struct {
		node     string
		others   int
		again    time.Duration
		priority int
	}{
		"alone":                {"silent", 0, 10 * time.Second, handler.LowPriority},
		"with 999 others":      {"silent", 999, 100 * time.Second, handler.LowPriority},
		"its node answers":     {"answers", 999, time.Second, 0},
		"its node is gone too": {"gone", 0, 10 * time.Second, handler.LowPriority},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounting(t, silent, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "answers"}})
			pod := podOf("p", Kind, "move")
			pod.Spec.NodeName = tc.node
			m := moveOf("p")
			m.Spec.Reason = placementv1alpha1.MoveDisconnect
			controllertest.Must(t, c.api.Create(t.Context(), pod))
			controllertest.Must(t, c.api.Create(t.Context(), m))
			r := &Reconciler{Client: c.api, API: c.api, Clock: clocktesting.NewFakeClock(noon.Add(time.Hour)), meters: newMeters()}
			for i := range tc.others {
				r.looked.note(client.ObjectKey{Name: fmt.Sprint(i)}, noon, 0)
			}
			var is ctrl.Result
			for range 2 { // the phase is written, and then looked at
				var err error
				if is, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
					t.Fatal(err)
				}
			}
			if is.RequeueAfter != tc.again || is.Priority == nil || *is.Priority != tc.priority {
				t.Errorf("it is %+v", is)
			}
		})
	}
}

// Moves that have not ended are counted, and of these the ones that are over their deadline.
func TestActiveMoves(t *testing.T) {
	made := func(name string, ago time.Duration, reason placementv1alpha1.MoveReason, phase placementv1alpha1.MovePhase) client.Object {
		return &placementv1alpha1.Move{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))},
			Spec:       placementv1alpha1.MoveSpec{Reason: reason, DeadlineSeconds: 60}, Status: placementv1alpha1.MoveStatus{Phase: phase},
		}
	}
	a := &Active{Clock: clocktesting.NewFakePassiveClock(noon), Client: controllertest.Builder(t,
		made("a", time.Second, placementv1alpha1.MoveDrain, ""),
		made("b", time.Hour, placementv1alpha1.MoveDrain, placementv1alpha1.MoveEvicting),
		made("c", time.Hour, placementv1alpha1.MoveDrain, placementv1alpha1.MoveDone),
		made("d", time.Minute, placementv1alpha1.MoveRebalance, placementv1alpha1.MovePlanned),
	).Build()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(a)
	got, err := registry.Gather()
	controllertest.Must(t, err)
	values := make(map[string]float64)
	for _, family := range got {
		for _, m := range family.GetMetric() {
			values[family.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"espalier_moves_active Drain": 2, "espalier_moves_active Rebalance": 1, "espalier_moves_active Restart": 0, "espalier_moves_active Disconnect": 0,
		"espalier_moves_overdue Drain": 1, "espalier_moves_overdue Rebalance": 0,
	} {
		if is, there := values[name]; !there || is != want {
			t.Errorf("%s is %v, want %v", name, is, want)
		}
	}
}

// Time counts as below what is wanted from one look to the next, if there are too few at the second.
func TestSecondsBelow(t *testing.T) {
	r := &Reconciler{meters: newMeters()}
	now := noon
	isReady := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	o := &objects{move: &placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain}}, pod: isReady}
	f := facts{phase: placementv1alpha1.MoveReplacing, holder: ours, wanted: 3}
	for _, step := range []struct {
		ready int
		want  float64
	}{{1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 2}, {3, 2}} {
		f.ready = step.ready
		r.meter(o, &f, now)
		now = now.Add(time.Second)
		if got := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain")); got != step.want {
			t.Errorf("with %d others ready it is %v, want %v", step.ready, got, step.want)
		}
	}
	before := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain"))
	f.wanted, f.ready = 9, 3
	r.meter(o, &f, now.Add(time.Second))
	f.wanted, f.ready, f.unready = 3, 0, true
	r.meter(o, &f, now.Add(2*time.Second))
	if got := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain")); got != before {
		t.Errorf("pods that are wanted since count, or one that was not ready: %v", got-before)
	}
}

// docs/moves.md has a row for each metric of Moves, and for no other.
func TestMetricsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/moves.md")
	controllertest.Must(t, err)
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(espalier_[a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		told = append(told, m[1])
	}
	registry, m := prometheus.NewRegistry(), newMeters()
	registry.MustRegister(m.ended, m.below, &Active{Client: controllertest.Builder(t).Build(), Clock: clocktesting.NewFakePassiveClock(time.Now())})
	var there []string
	descs := make(chan *prometheus.Desc, 100)
	registry.Describe(descs)
	close(descs)
	for d := range descs {
		there = append(there, regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1])
	}
	slices.Sort(told)
	slices.Sort(there)
	if !slices.Equal(told, there) {
		t.Errorf("there are %q, and rows of %q", there, told)
	}
}
