// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must ends the test if there is an error.
var must = placementtest.Must

// one is a replica whose election and looks are made by hand, with a clock that all share.
type one struct {
	*Replicas
	testing.TB
	lock    resourcelock.Interface
	changes int
}

// join has a replica join that never looks by itself: its context is over.
func join(t *testing.T, client kubernetes.Interface, identity string, now *time.Time) *one {
	t.Helper()
	o := &one{Replicas: New(), TB: t}
	o.now = func() time.Time { return *now }
	o.OnChange(func() { o.changes++ })
	election := &leaderelection.LeaderElectionConfig{RetryPeriod: 2 * time.Second, Lock: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-scheduler"}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, o.Join(ended, election))
	o.lock = election.Lock
	return o
}

// renews has it take a Lease, or renew it.
func (o *one) renews() {
	o.Helper()
	record := resourcelock.LeaderElectionRecord{HolderIdentity: o.lock.Identity(), LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(o.now())}
	if _, _, err := o.lock.Get(o.Context()); err != nil {
		must(o, o.lock.Create(o.Context(), record))
		return
	}
	must(o, o.lock.Update(o.Context(), record))
}

// step lets two seconds pass, in which replicas renew their Leases and look.
func step(now *time.Time, all ...*one) {
	*now = now.Add(2 * time.Second)
	for _, o := range all {
		o.renews()
		o.look(o.Context())
	}
}

func (o *one) holds(want string) {
	o.Helper()
	if got := o.lock.Describe(); got != want {
		o.Errorf("%s holds %s, want %s", o.Identity(), got, want)
	}
}

// pods are of as many workloads.
func pods(n int) []*corev1.Pod {
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i)}}
	}
	return all
}

// owned counts the owners of each pod, and fails the test unless each has one.
func owned(t *testing.T, all []*one) (each []int) {
	t.Helper()
	each = make([]int, len(all))
	for _, pod := range pods(200) {
		owners := 0
		for i, o := range all {
			if o.Owns(pod) {
				owners++
				each[i]++
			}
		}
		if owners != 1 {
			t.Fatalf("pod %s is owned by %d of %d replicas", pod.Name, owners, len(all))
		}
	}
	return each
}

// Two replicas hold a Lease each. The second places nothing before the first acknowledges it, and the first nothing of
// the second's from when it sees it; when one goes, the other has all.
func TestTwoReplicas(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := join(t, client, "a", &now)
	a.renews()
	a.holds("kube-system/espalier-scheduler-0")
	a.look(t.Context())
	if a.Owns(pods(1)[0]) {
		t.Error("it places pods before it can have seen what others have bound")
	}
	now = now.Add(2 * time.Second)
	a.look(t.Context())
	owned(t, []*one{a})
	if a.changes != 2 {
		t.Errorf("it was told of %d changes, want of the Lease and of the share", a.changes)
	}
	end, ok := a.Begin(pods(1)[0])
	if !ok {
		t.Fatal("a pod of its own cannot be bound")
	}

	b := join(t, client, "b", &now)
	b.renews()
	b.holds("kube-system/espalier-scheduler-1")
	for range 3 {
		step(&now, a, b)
	}
	placedByA := slices.IndexFunc(pods(200), func(p *corev1.Pod) bool { return !a.Owns(p) })
	if placedByA < 0 || slices.ContainsFunc(pods(200), b.Owns) {
		t.Error("before the first has acknowledged the second, neither may place the second's share")
	}
	if _, ok := a.Begin(pods(200)[placedByA]); ok {
		t.Error("the first binds a pod of the second's share")
	}
	end()
	for range 3 {
		step(&now, a, b)
	}
	if each := owned(t, []*one{a, b}); slices.Min(each) < 60 {
		t.Errorf("of 200 workloads they own %v", each)
	}
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "espalier-scheduler-0", metav1.GetOptions{})
	if err != nil || lease.Annotations[clusterview.AcknowledgesAnnotation] != "b" {
		t.Errorf("the first's Lease is %v, %v", lease, err)
	}

	for range 7 { // the first is gone
		step(&now, b)
	}
	if slices.ContainsFunc(pods(200), func(p *corev1.Pod) bool { return b.Owns(p) == a.Owns(p) }) {
		t.Error("the second has taken over, or given up, before the first's Lease was over")
	}
	step(&now, b)
	owned(t, []*one{b})
}

// A replica that is terminated hands its share on at once, and one that follows takes its Lease.
func TestGivenBack(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := join(t, client, "a", &now)
	a.renews()
	b := join(t, client, "b", &now)
	b.renews()
	for range 4 {
		step(&now, a, b)
	}
	owned(t, []*one{a, b})
	must(t, a.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}))
	b.look(t.Context())
	owned(t, []*one{b})
	c := join(t, client, "c", &now)
	c.renews()
	c.holds("kube-system/espalier-scheduler-0")
}

// What makes no sense is said at the start.
func TestJoinRefuses(t *testing.T) {
	for want, election := range map[string]*leaderelection.LeaderElectionConfig{
		"leaderElection.leaderElect": nil,
		"--active-active":            {Lock: &lock{}},
	} {
		if err := New().Join(t.Context(), election); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Before it joins, a replica owns nothing, and the plugin says so of pods.
func TestPlugin(t *testing.T) {
	r := New()
	if r.On() || r.Identity() != "" {
		t.Error("it is on before the plugin is made")
	}
	is, err := r.Plugin(t.Context(), nil, nil)
	if err != nil || !r.On() {
		t.Fatalf("the plugin: %v, on: %t", err, r.On())
	}
	p, _ := is.(plugin)
	if status := p.PreEnqueue(t.Context(), pods(1)[0]); !status.IsRejected() {
		t.Errorf("a pod is let in: %v", status)
	}
}

// A pod that another replica places becomes this one's when its labels name another workload, or another owner adopts it. The queue has
// no event for the second but that of any change.
func TestPodsThatBecomeOurs(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	all := []*one{join(t, client, "a", &now), join(t, client, "b", &now)}
	for range 6 {
		step(&now, all...)
	}
	owned(t, all)
	before, after := pods(1)[0], pods(1)[0]
	o := all[0]
	if o.Owns(before) {
		o = all[1]
	}
	controller := true
	for i := 0; !o.Owns(after); i++ {
		after.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprint("web-", i), Controller: &controller}}
	}
	events, err := plugin{o.Replicas}.EventsToRegister(t.Context())
	if err != nil || len(events) != 1 {
		t.Fatalf("it wants to know of %v, %v", events, err)
	}
	if event := events[0].Event; event.Resource != fwk.TargetPod || event.ActionType != fwk.Update {
		t.Errorf("it hears of %v: the queue says of a new owner that there is an update, and shows it only to who wants to know of any", event)
	}
	hint := events[0].QueueingHintFn
	if got, err := hint(klog.Background(), before, before, after); got != fwk.Queue || err != nil {
		t.Errorf("a pod that has become its own: %v, %v", got, err)
	}
	if got, err := hint(klog.Background(), before, before, before); got != fwk.QueueSkip || err != nil {
		t.Errorf("one that is another's still: %v, %v", got, err)
	}
}

// Replicas that are to be active wait until none leads any more, as in a rolling update that switches them on.
func TestBesideALeader(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	leader := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-scheduler"}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "l"},
	}
	must(t, leader.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "l", LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(now)}))
	a := join(t, client, "a", &now)
	for range 5 {
		step(&now, a)
	}
	a.holds("kube-system/espalier-scheduler-0")
	if slices.ContainsFunc(pods(200), a.Owns) {
		t.Fatal("it places pods beside one that leads")
	}
	must(t, leader.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}))
	step(&now, a)
	step(&now, a)
	owned(t, []*one{a})
}

// A replica whose answer is lost when it takes a Lease finds that it has it, and takes no second one: others would leave it the share of both.
func TestAnswerIsLost(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := join(t, client, "a", &now)
	lost := true
	client.PrependReactor("create", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if !lost {
			return false, nil, nil
		}
		lost = false
		if create, ok := action.(k8stesting.CreateAction); ok {
			if err := client.Tracker().Add(create.GetObject()); err != nil {
				t.Error(err)
			}
		}
		return true, nil, errors.New("no answer")
	})
	if _, _, err := a.lock.Get(t.Context()); err == nil {
		t.Fatal("there is a Lease")
	}
	if err := a.lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(now)}); err == nil {
		t.Fatal("the answer came")
	}
	a.renews()
	a.holds("kube-system/espalier-scheduler-0")
	if leases, err := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || len(leases.Items) != 1 {
		t.Errorf("it holds %v, %v", leases.Items, err)
	}
}

// An API server that does not answer leaves everything as it is.
func TestLookFails(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := join(t, client, "a", &now)
	step(&now, a)
	step(&now, a)
	owned(t, []*one{a})
	client.PrependReactor("list", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	now = now.Add(time.Hour)
	a.look(t.Context())
	owned(t, []*one{a})
	b := join(t, client, "b", &now)
	if _, _, err := b.lock.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "listing the Leases") {
		t.Errorf("it looks for a vacant Lease: %v", err)
	}
}
