// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// at is a second of the vectors, which count from 0.
func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func text(second int64) string { return at(second).Format(time.RFC3339) }

// cluster is a pod of a Deployment that asks for a new lease, on node a that is valid until 1000.
type cluster struct {
	*testing.T
	api    client.Client
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	*Controller
}

func node(name string, end int64) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("4")}},
	}
	if end > 0 {
		n.Annotations = map[string]string{clusterview.ValidUntilAnnotation: text(end)}
	}
	return n
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1-0", UID: "web-1-0", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "web-1", Controller: new(true)}},
			Annotations: map[string]string{
				clusterview.LeaseAnnotation: "50s", clusterview.LeaseExpiryAnnotation: text(60), clusterview.RenewLeaseAnnotation: "true",
			},
		},
		Spec:   corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: "a", Containers: []corev1.Container{{Name: "web"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func newCluster(t *testing.T, p *corev1.Pod, more ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := append([]client.Object{
		p, node("a", 1000), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1", UID: "web-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: new(true)}},
		}},
	}, more...)
	c := &cluster{T: t, clock: clocktesting.NewFakePassiveClock(at(0)), events: events.NewFakeRecorder(100)}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&placementv1alpha1.Move{}).Build()
	c.Controller = &Controller{Client: c.api, API: c.api, Events: c.events, Clock: c.clock, Options: Options{
		Schedulers: []string{"espalier-scheduler"}, Namespaces: labels.Everything(), AtOnce: 5,
	}}
	return c
}

// lookAt looks at a second, and returns when the pod's lease ends, whether it still asks for another, and the Moves that there are.
func (c *cluster) lookAt(second int64) (expiry string, asking bool, moves []placementv1alpha1.Move) {
	c.Helper()
	c.clock.SetTime(at(second))
	if err := c.look(c.Context()); err != nil {
		c.Fatal(err)
	}
	var p corev1.Pod
	if err := c.api.Get(c.Context(), client.ObjectKey{Namespace: "ns", Name: "web-1-0"}, &p); err != nil {
		c.Fatal(err)
	}
	var list placementv1alpha1.MoveList
	if err := c.api.List(c.Context(), &list); err != nil {
		c.Fatal(err)
	}
	_, asking = p.Annotations[clusterview.RenewLeaseAnnotation]
	return p.Annotations[clusterview.LeaseExpiryAnnotation], asking, list.Items
}

// said are the Events so far.
func (c *cluster) said() (all []string) {
	for len(c.events.Events) > 0 {
		all = append(all, <-c.events.Events)
	}
	return all
}

// Vector TV19 on objects: in place as long as the node lives long enough, then a Move, and where there is no other node neither.
func TestVector_TV19_Renewal(t *testing.T) {
	for name, tc := range map[string]struct {
		now    int64
		others []client.Object
		expiry string
		asking bool
		moves  int
	}{
		"at 200 the node lives long enough":    {200, nil, text(250), false, 0},
		"at 949 it does for the last time":     {949, nil, text(999), false, 0},
		"at 950 it ends with the lease":        {950, nil, text(60), true, 0},
		"at 975 another one does":              {975, []client.Object{node("b", 2000)}, text(60), true, 1},
		"and another one that has no end":      {975, []client.Object{node("b", 0)}, text(60), true, 1},
		"at 1975 there is nowhere to go":       {1975, []client.Object{node("b", 2000)}, text(60), true, 0},
		"the other one lives too short a time": {975, []client.Object{node("b", 1025)}, text(60), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), tc.others...)
			expiry, asking, moves := c.lookAt(tc.now)
			if expiry != tc.expiry || asking != tc.asking || len(moves) != tc.moves {
				t.Fatalf("the lease ends %s, it asks: %t, and there are %d Moves; want %s, %t and %d", expiry, asking, len(moves), tc.expiry, tc.asking, tc.moves)
			}
			if tc.moves > 0 {
				m := moves[0].Spec
				if m.Reason != placementv1alpha1.MoveLease || m.Pod.Name != "web-1-0" || m.Avoid == nil || *m.Avoid.Value != "a" {
					t.Errorf("the Move is %+v", m)
				}
			}
			said := c.said()
			if kept := tc.asking && tc.moves == 0; kept != (len(said) == 1) {
				t.Errorf("it is told %q", said)
			}
			if _, _, again := c.lookAt(tc.now + 1); len(again) != len(moves) || len(c.said()) > 0 {
				t.Errorf("a second later there are %d Moves, and it is told more", len(again))
			}
		})
	}
}

// What is said where a lease is not renewed.
func TestWhatIsSaid(t *testing.T) {
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod()
		change(p)
		return p
	}
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	}
	cordoned, full, unready := node("b", 0), node("b", 0), node("b", 0)
	cordoned.Spec.Unschedulable = true
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	unready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	const nowhere = "its node a ends 1970-01-01T00:16:40Z, and no other node takes it and lives for 50s more"
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		others []client.Object
		want   string // "" for nothing
	}{
		"no other node":              {pod(), nil, nowhere},
		"one that is cordoned":       {pod(), []client.Object{cordoned}, nowhere},
		"one that is full":           {pod(), []client.Object{full}, nowhere},
		"one that is not ready":      {pod(), []client.Object{unready}, nowhere},
		"one that it does not allow": {changed(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), []client.Object{node("b", 0)}, nowhere},
		"a StatefulSet's": {changed(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "StatefulSet" }), []client.Object{node("b", 0)},
			"its node a does not live long enough, and only pods of Deployments that allow a surge are moved, without volumes that one node alone can have"},
		"under two budgets": {pod(), []client.Object{node("b", 0), budget("one"), budget("two")},
			"its node a does not live long enough, and no pod that several disruption budgets select is moved"},
		"without a lease": {changed(func(p *corev1.Pod) { delete(p.Annotations, clusterview.LeaseAnnotation) }), nil,
			"it has none: write the annotation espalier.dev/lease"},
		"with a lease that cannot be read": {changed(func(p *corev1.Pod) { p.Annotations[clusterview.LeaseAnnotation] = "3d" }), nil,
			`annotation espalier.dev/lease: no duration "3d": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`},
		"with another value": {changed(func(p *corev1.Pod) { p.Annotations[clusterview.RenewLeaseAnnotation] = "yes" }), nil,
			`annotation espalier.dev/renew-lease: unknown value "yes": use true, or remove it`},
		"of another scheduler":   {changed(func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), nil, ""},
		"that has ended":         {changed(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), nil, ""},
		"that does not ask":      {changed(func(p *corev1.Pod) { delete(p.Annotations, clusterview.RenewLeaseAnnotation) }), nil, ""},
		"on a node that is gone": {changed(func(p *corev1.Pod) { p.Spec.NodeName = "gone" }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.pod, tc.others...)
			expiry, _, moves := c.lookAt(975)
			c.lookAt(976)
			if expiry != text(60) || len(moves) > 0 {
				t.Errorf("the lease ends %s, and there are %d Moves", expiry, len(moves))
			}
			want := "Warning LeaseNotRenewed The lease is not renewed: " + tc.want + "."
			if tc.want == "" {
				want = ""
			}
			if got := strings.Join(c.said(), "\n"); got != want {
				t.Errorf("it is told\n%s, want\n%s", got, want)
			}
		})
	}
}

// A node whose end cannot be read does not live long enough.
func TestMalformedEnd(t *testing.T) {
	c := newCluster(t, pod())
	var a corev1.Node
	if err := c.api.Get(t.Context(), client.ObjectKey{Name: "a"}, &a); err != nil {
		t.Fatal(err)
	}
	a.Annotations[clusterview.ValidUntilAnnotation] = "tomorrow"
	if err := c.api.Update(t.Context(), &a); err != nil {
		t.Fatal(err)
	}
	if expiry, asking, _ := c.lookAt(200); expiry != text(60) || !asking {
		t.Errorf("the lease ends %s, it asks: %t", expiry, asking)
	}
	if said := c.said(); len(said) != 1 || !strings.Contains(said[0], `its node a has a malformed end: annotation espalier.dev/valid-until: no time "tomorrow"`) {
		t.Errorf("it is told %q", said)
	}
}

// Which nodes take a pod is a look at all of them: it is taken once in half a minute for one that no node takes, and never while none can be moved.
func TestAKeptPodRests(t *testing.T) {
	full := node("b", 0)
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	c := newCluster(t, pod(), full)
	evaluated := 0
	c.Client = interceptor.NewClient(c.api.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, is := into.(*corev1.NamespaceList); is && (&client.ListOptions{}).ApplyOptions(options).LabelSelector == nil {
				evaluated++ // filters need the namespaces
			}
			return to.List(ctx, into, options...)
		},
	})
	for _, look := range []struct {
		at     int64
		atOnce int
		want   int
	}{{970, 0, 0}, {971, 5, 1}, {973, 5, 1}, {1000, 5, 1}, {1001, 5, 2}} {
		c.AtOnce = look.atOnce
		if c.lookAt(look.at); evaluated != look.want {
			t.Errorf("at %d filters were evaluated %d times, want %d", look.at, evaluated, look.want)
		}
	}
	if said := c.said(); len(said) != 1 {
		t.Errorf("it is told %q", said)
	}
}

// Another reason is said when client-go writes it as an Event of its own: later, or of a pod that has changed.
func TestAnotherReason(t *testing.T) {
	c := newCluster(t, pod())
	change := func(of client.Object, name, key, value string) {
		if err := c.api.Get(t.Context(), client.ObjectKey{Namespace: of.GetNamespace(), Name: name}, of); err != nil {
			t.Fatal(err)
		}
		annotations := of.GetAnnotations()
		annotations[key] = value
		of.SetAnnotations(annotations)
		if err := c.api.Update(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	for _, look := range []struct {
		at, end int64
		changed bool
		says    bool
	}{{975, 1000, false, true}, {1006, 990, false, false}, {1754, 990, false, false}, {1755 + 30, 990, false, true}, {1820, 995, false, false}, {1860, 995, true, true}} {
		change(&corev1.Node{}, "a", clusterview.ValidUntilAnnotation, text(look.end))
		if look.changed {
			change(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, "web-1-0", "example.com/changed", "yes")
		}
		c.lookAt(look.at)
		if said := c.said(); len(said) != 0 != look.says || look.says && !strings.Contains(said[0], "its node a ends "+text(look.end)) {
			t.Errorf("at %d it is told %q", look.at, said)
		}
	}
}

// No more Moves are made than may be at once.
func TestAtOnce(t *testing.T) {
	c := newCluster(t, pod(), node("b", 0))
	c.AtOnce = 0
	if _, _, moves := c.lookAt(975); len(moves) > 0 {
		t.Errorf("there are %d Moves", len(moves))
	}
	c.AtOnce = 1
	if _, _, moves := c.lookAt(976); len(moves) != 1 {
		t.Errorf("there are %d Moves", len(moves))
	}
}
