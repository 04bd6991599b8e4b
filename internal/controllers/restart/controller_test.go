// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/pkg/placement/reschedule"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{
		Mode: Enabled, Schedulers: []string{"espalier-scheduler"}, Records: "kube-system", Namespaces: labels.Everything(), AtOnce: 5,
		Policy: reschedule.Policy{Delay: 30 * time.Second, Function: reschedule.Exponential, MaxDelay: 30 * time.Minute, Interval: time.Hour, Unlimited: true},
	}
}

func TestOptions(t *testing.T) {
	if err := options().Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		`"Maybe" is no mode: use Enabled or ByPolicy`:                               func(o *Options) { o.Mode = "Maybe" },
		`"Linear" is no function of delays: use Constant, Exponential or Fibonacci`: func(o *Options) { o.Policy.Function = "Linear" },
		"0s is no first delay: use 1s to 1h0m0s":                                    func(o *Options) { o.Policy.Delay = 0 },
		"10s is no longest delay: use 30s to 1h0m0s":                                func(o *Options) { o.Policy.MaxDelay = 10 * time.Second },
		"2h0m0s is no interval: use 1m0s to 1h0m0s":                                 func(o *Options) { o.Policy.Interval = 2 * time.Hour },
		"-1 is no number of attempts: use 1 to 1000, or 0 for any":                  func(o *Options) { o.Policy.Attempts = -1 },
		"0 is no bound of Moves at once: use 1 to 1000":                             func(o *Options) { o.AtOnce = 0 },
	} {
		o := options()
		change(&o)
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A pod that was well for long has not failed before, also where nobody has looked meanwhile.
func TestFailingAgain(t *testing.T) {
	for well, again := range map[time.Duration]bool{memory - time.Second: true, memory: false} {
		f := make(failing)
		f.since("p", begin, true, begin)
		now := begin.Add(well)
		if since := f.since("p", now, true, now); since.Equal(begin) != again {
			t.Errorf("a pod that was well for %s fails since %s", well, since)
		}
	}
}

func TestFailingSince(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(minute) * time.Minute)) }
	condition := func(is corev1.PodConditionType, status corev1.ConditionStatus, minute int) corev1.PodCondition {
		return corev1.PodCondition{Type: is, Status: status, LastTransitionTime: at(minute)}
	}
	waits := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	scheduled, unready := condition(corev1.PodScheduled, corev1.ConditionTrue, 1), condition(corev1.PodReady, corev1.ConditionFalse, 2)
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		since  int // minutes, -1 for a pod that does not fail
	}{
		"ready":                  {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, 1)}}, -1},
		"not ready, and it runs": {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{unready}}, -1},
		"in a crash loop":        {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{scheduled, unready}, ContainerStatuses: waits("CrashLoopBackOff")}, 2},
		"no image":               {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{scheduled}, InitContainerStatuses: waits("ImagePullBackOff")}, 1},
		"it starts":              {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionTrue, 9)}, ContainerStatuses: waits("ContainerCreating")}, -1},
		"it hangs":               {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{scheduled}, ContainerStatuses: waits("ContainerCreating")}, 1},
		"it has ended":           {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{unready}, ContainerStatuses: waits("CrashLoopBackOff")}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			since, fails := failingSince(&corev1.Pod{Status: tc.status}, at(9).Add(30*time.Second))
			if fails != (tc.since >= 0) || fails && !since.Equal(at(tc.since).Time) {
				t.Errorf("since %s: %t", since, fails)
			}
		})
	}
}

// rig is a controller on an API server that is played: a Deployment of three with pods on the nodes bad, bad and good, of which those on bad fail
// since the beginning.
type rig struct {
	*testing.T
	*Controller
	clock *clocktesting.FakeClock
}

func newRig(t *testing.T, o Options, change func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod)) *rig {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-scheduler-failures"},
		Data:       map[string]string{"failures.json": `{"version":1,"revisions":[{"workload":"ns/Deployment.apps/web","revision":"1","nodes":[],"family":"","regarding":{},"marked":["bad"]}]}`},
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(3)), Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
	}}
	objects := []client.Object{
		record, d,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bad", Labels: map[string]string{corev1.LabelHostname: "bad.example.com"}}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "web-1", OwnerReferences: owned("Deployment", "web")}},
	}
	for i, node := range []string{"bad", "bad", "good"} {
		name := fmt.Sprint("web-1-", i)
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"pod-template-hash": "1"}, OwnerReferences: owned("ReplicaSet", "web-1")},
			Spec:       corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: node},
			Status: corev1.PodStatus{
				Phase:             corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(begin)}},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}},
			},
		}
		change(record, d, p)
		objects = append(objects, p)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&placementv1alpha1.Move{}).Build()
	r := &rig{T: t, clock: clocktesting.NewFakeClock(begin)}
	r.Controller = &Controller{Client: api, API: api, Clock: r.clock, Options: o, failing: make(failing)}
	return r
}

func plain(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod) {}

// after looks once some time later, and wants these pods to have Moves.
func (r *rig) after(d time.Duration, want ...string) {
	r.Helper()
	r.clock.Step(d)
	if err := r.look(r.Context()); err != nil {
		r.Fatal(err)
	}
	var moves placementv1alpha1.MoveList
	if err := r.API.List(r.Context(), &moves); err != nil {
		r.Fatal(err)
	}
	var got []string
	for i := range moves.Items {
		m := &moves.Items[i]
		got = append(got, m.Name)
		if a := m.Spec.Avoid; a == nil || a.TopologyKey != corev1.LabelHostname || *a.Value != "bad.example.com" || m.Spec.Reason != placementv1alpha1.MoveRestart {
			r.Errorf("%s is %+v", m.Name, m.Spec)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("%s are moved, want %s", got, want)
	}
}

// After the delay one pod is replaced, and the next one when that has ended and the longer delay is over.
func TestRestarts(t *testing.T) {
	r := newRig(t, options(), plain)
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0")
	r.after(time.Second, "web-1-0") // the surge is one
	m := &placementv1alpha1.Move{}
	if err := r.API.Get(r.Context(), client.ObjectKey{Namespace: "ns", Name: "web-1-0"}, m); err != nil {
		t.Fatal(err)
	}
	m.CreationTimestamp = metav1.NewTime(begin.Add(30 * time.Second))
	if err := r.Client.Update(r.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Status.Phase = placementv1alpha1.MoveDone
	if err := r.Client.Status().Update(r.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(r.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1-0"}}); err != nil {
		t.Fatal(err)
	}
	r.after(28*time.Second, "web-1-0")         // 59 s
	r.after(time.Second, "web-1-0", "web-1-1") // 60 s after it failed
}

// A record that cannot be read is said, and holds up no pods of the other schedulers.
func TestRestartsBesideARecordThatCannotBeRead(t *testing.T) {
	o := options()
	o.Schedulers = []string{"broken", "espalier-scheduler"}
	r := newRig(t, o, plain)
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "broken-failures"}, Data: map[string]string{"failures.json": "{"}}
	if err := r.Client.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	r.clock.Step(time.Hour)
	if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "broken-failures") {
		t.Errorf("the error is %v", err)
	}
	var moves placementv1alpha1.MoveList
	if err := r.API.List(t.Context(), &moves); err != nil || len(moves.Items) != 1 {
		t.Errorf("there are %d Moves, error %v, want one", len(moves.Items), err)
	}
}

// A pod that was handed back has failed since then, and a Move that was not begun is no attempt.
func TestRestartsThatCameToNothing(t *testing.T) {
	for phase, next := range map[placementv1alpha1.MovePhase]time.Duration{placementv1alpha1.MoveUndone: time.Minute, placementv1alpha1.MoveFailed: time.Minute} {
		r := newRig(t, options(), func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
			if p.Name == "web-1-1" {
				p.Spec.NodeName = "good"
			}
		})
		r.after(time.Hour, "web-1-0")
		m := &placementv1alpha1.Move{}
		if err := r.API.Get(r.Context(), client.ObjectKey{Namespace: "ns", Name: "web-1-0"}, m); err != nil {
			t.Fatal(err)
		}
		m.CreationTimestamp = metav1.NewTime(r.clock.Now())
		if err := r.Client.Update(r.Context(), m); err != nil {
			t.Fatal(err)
		}
		ended := metav1.NewTime(r.clock.Now())
		m.Status.Phase, m.Status.EndedAt = phase, &ended
		if err := r.Client.Status().Update(r.Context(), m); err != nil {
			t.Fatal(err)
		}
		r.after(next-time.Second, "web-1-0")
		r.after(time.Second, "web-1-0", "web-1-0-1")
	}
}

// Nothing is read of pods that cannot have a Move now: a bad node may fail pods of hundreds of workloads.
func TestRequestsOfPodsThatWait(t *testing.T) {
	o := options()
	o.AtOnce = 1
	r := newRig(t, o, plain)
	gets := 0
	r.API = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, record := into.(*corev1.ConfigMap); !record {
				gets++
			}
			return to.Get(ctx, key, into, options...)
		},
	})
	r.Policy.Delay = time.Hour
	r.after(time.Second)
	if gets == 0 {
		t.Error("it is not asked what they are of")
	}
	gets = 0
	r.after(time.Second)
	r.Policy.Delay = 30 * time.Second
	r.after(time.Second)
	if gets != 0 {
		t.Errorf("there were %d requests for pods that are not due", gets)
	}
	r.after(30*time.Second, "web-1-0")
	gets = 0
	if r.after(time.Second, "web-1-0"); gets != 0 {
		t.Errorf("there were %d requests while as many are moved as may be", gets)
	}
}

// What keeps a pod where it is.
func TestNoRestarts(t *testing.T) {
	for name, tc := range map[string]struct {
		option func(*Options)
		change func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod)
	}{
		"no node is marked": {change: func(c *corev1.ConfigMap, _ *appsv1.Deployment, _ *corev1.Pod) {
			c.Data["failures.json"] = strings.Replace(c.Data["failures.json"], `"bad"`, ``, 1)
		}},
		"it is marked for another revision": {change: func(c *corev1.ConfigMap, _ *appsv1.Deployment, _ *corev1.Pod) {
			c.Data["failures.json"] = strings.Replace(c.Data["failures.json"], `"revision":"1"`, `"revision":"2"`, 1)
		}},
		"it is marked for another workload": {change: func(c *corev1.ConfigMap, _ *appsv1.Deployment, _ *corev1.Pod) {
			c.Data["failures.json"] = strings.Replace(c.Data["failures.json"], "ns/Deployment", "elsewhere/Deployment", 1)
		}},
		"a DaemonSet's pods": {change: func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
			p.OwnerReferences[0].Kind = "DaemonSet"
		}},
		"another scheduler":    {change: func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) { p.Spec.SchedulerName = "other" }},
		"somebody else's pods": {change: func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) { p.OwnerReferences[0].Kind = "Rollout" }},
		"another namespace":    {option: func(o *Options) { o.Namespaces = labels.SelectorFromSet(labels.Set{"team": "db"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			if tc.option != nil {
				tc.option(&o)
			}
			if tc.change == nil {
				tc.change = plain
			}
			newRig(t, o, tc.change).after(time.Hour)
		})
	}
}

// Whether pods are replaced the policy says, or the flag where it says nothing.
func TestRestartsByPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		mode string
		says placementv1alpha1.MovesMode
		want []string
	}{
		"the policy does not want": {Enabled, placementv1alpha1.MovesDisabled, nil},
		"the policy says nothing":  {Enabled, "", []string{"web-1-0"}},
		"nobody has asked":         {move.ByPolicy, "", nil},
		"the policy has asked":     {move.ByPolicy, placementv1alpha1.MovesEnabled, []string{"web-1-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Mode = tc.mode
			r := newRig(t, o, plain)
			p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			p.Spec.Moves = &placementv1alpha1.Moves{Restart: tc.says}
			if err := r.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			r.after(time.Minute, tc.want...)
		})
	}
}
