// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

const day = 24 * time.Hour

// newYear is when the pools of the tests begin.
var newYear = time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)

// pool is a controller of some nodes, by a clock that a test sets.
type pool struct {
	*testing.T
	*Controller
	api    client.Client
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	// nodesAt is what the clocks of the nodes say, by which they report; the zero time for what the controller's says.
	nodesAt time.Time
	// unready is that no node is ready.
	unready bool
}

func options(t *testing.T) Options {
	t.Helper()
	schedule, err := stagger.ParseSchedule("mon,tue,wed,thu,fri,sat,sun", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Nodes: labels.SelectorFromSet(labels.Set{"pool": "blue"}), Schedule: schedule, Domain: corev1.LabelTopologyZone, DrainFor: time.Hour,
		Rule: stagger.Rule{Lifetime: 21 * day, Least: day, PerDomain: 1}, Schedulers: []string{"espalier-scheduler"},
	}
}

func newPool(t *testing.T, objects ...client.Object) *pool {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &pool{T: t, clock: clocktesting.NewFakePassiveClock(newYear), events: events.NewFakeRecorder(1000)}
	p.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Node{}).Build()
	p.restart(options(t))
	return p
}

// restart has another controller go on, which remembers nothing.
func (p *pool) restart(o Options) {
	p.Controller = &Controller{Client: p.reporting(), Events: p.events, Clock: p.clock, Options: o}
}

// reporting is the API server with nodes that report all the while.
func (p *pool) reporting() client.Client {
	return interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if nodes, is := list.(*corev1.NodeList); is {
				for i := range nodes.Items {
					p.report(&nodes.Items[i])
				}
			}
			return err
		},
	})
}

// report has a node have reported now.
func (p *pool) report(n *corev1.Node) {
	at := p.nodesAt
	if at.IsZero() {
		at = p.clock.Now()
	}
	is := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(at)}
	if p.unready {
		is.Status = corev1.ConditionUnknown
	}
	n.Status.Conditions = append([]corev1.NodeCondition{is}, n.Status.Conditions...)
}

// blue is a node of the pool in a zone, made at new year.
func blue(name, zone string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "blue", corev1.LabelTopologyZone: zone}, CreationTimestamp: metav1.NewTime(newYear)},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "first"}},
	}
}

// on is a pod of a Deployment on a node.
func on(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: new(true)}}},
		Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "espalier-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func (p *pool) lookAt(now time.Time) {
	p.Helper()
	p.clock.SetTime(now)
	if err := p.look(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func (p *pool) node(name string) *corev1.Node {
	p.Helper()
	var n corev1.Node
	if err := p.api.Get(p.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		p.Fatal(err)
	}
	return &n
}

func (p *pool) nodes() []corev1.Node {
	p.Helper()
	var list corev1.NodeList
	if err := p.api.List(p.Context(), &list); err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// change changes a node as somebody else does.
func (p *pool) change(name string, change func(*corev1.Node)) {
	p.Helper()
	n := p.node(name)
	after := n.DeepCopy()
	change(after)
	if err := p.api.Patch(p.Context(), after, client.MergeFrom(n)); err != nil {
		p.Fatal(err)
	}
	status := p.node(name)
	afterStatus := status.DeepCopy()
	change(afterStatus)
	if err := p.api.Status().Patch(p.Context(), afterStatus, client.MergeFrom(status)); err != nil {
		p.Fatal(err)
	}
}

// reboot boots a node anew.
func (p *pool) reboot(name, boot string) {
	p.Helper()
	p.change(name, func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot })
}

// ends are those of all nodes, by name.
func (p *pool) ends() map[string]string {
	p.Helper()
	all := make(map[string]string)
	for _, n := range p.nodes() {
		all[n.Name] = n.Annotations[clusterview.ValidUntilAnnotation]
	}
	return all
}

// rebootDue is the status of the condition of a node, "" for none, with its reason.
func rebootDue(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == clusterview.RebootDue {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// Vector TV21 over three weeks: 40 nodes of the same age, in three zones. At most two are rebooted a day, never two of a zone at once, and none
// runs for more than 21 days and the time that the one before it takes. A controller that is restarted each day changes no end.
func TestVector_TV21_Wave(t *testing.T) {
	var objects []client.Object
	for i := range 40 {
		name := fmt.Sprintf("n%02d", i)
		objects = append(objects, blue(name, fmt.Sprint("zone-", i%3)), on("pod-of-"+name, name))
	}
	p := newPool(t, objects...)
	p.lookAt(newYear)
	first := p.ends()
	perDay := make(map[string]int)
	for _, end := range first {
		perDay[end]++
	}
	for end, n := range perDay {
		if n > 2 {
			t.Errorf("%d nodes end %s", n, end)
		}
	}
	if len(perDay) != 20 {
		t.Errorf("the nodes end on %d days, want 20: %v", len(perDay), perDay)
	}
	reboots, drained := make(map[string]int), make(map[string]bool)
	for now := newYear; now.Before(newYear.Add(22 * day)); now = now.Add(time.Hour) {
		if now.Hour() == 12 {
			p.restart(p.Options)
		}
		p.lookAt(now)
		out := make(map[string]int)
		for _, n := range p.nodes() {
			if _, is := outOfService(&n); !is {
				if end := n.Annotations[clusterview.ValidUntilAnnotation]; !drained[n.Name] && end != first[n.Name] {
					t.Fatalf("%v: node %s ends %s, and was to end %s", now, n.Name, end, first[n.Name])
				}
				continue
			}
			out[n.Labels[corev1.LabelTopologyZone]]++
			if !n.Spec.Unschedulable {
				t.Fatalf("%v: node %s is out of service and takes pods", now, n.Name)
			}
			switch {
			case !drained[n.Name]:
				// Its pod is moved within the hour.
				drained[n.Name] = true
				if err := p.api.Delete(t.Context(), on("pod-of-"+n.Name, n.Name)); err != nil {
					t.Fatal(err)
				}
			case n.Annotations[clusterview.RebootDueAnnotation] != "":
				reboots[now.Format(time.DateOnly)]++
				p.reboot(n.Name, "second")
			}
		}
		for zone, n := range out {
			if n > 1 {
				t.Fatalf("%v: %d nodes of %s are out of service", now, n, zone)
			}
		}
	}
	total := 0
	for date, n := range reboots {
		if total += n; n > 2 {
			t.Errorf("on %s %d nodes are rebooted", date, n)
		}
	}
	if total != 40 {
		t.Errorf("%d of 40 nodes were rebooted: %v", total, slices.Sorted(maps.Keys(reboots)))
	}
	for _, n := range p.nodes() {
		if n.Spec.Unschedulable || rebootDue(&n) != "False Rebooted" || n.Annotations[clusterview.ValidUntilAnnotation] == first[n.Name] {
			t.Errorf("node %s is left cordoned: %t, %s, until %s", n.Name, n.Spec.Unschedulable, rebootDue(&n), n.Annotations[clusterview.ValidUntilAnnotation])
		}
	}
}

// What becomes of one node, step by step.
func TestANodeReachesItsEnd(t *testing.T) {
	daemon, done := on("daemon", "n1"), on("done", "n1")
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	done.Status.Phase = corev1.PodSucceeded
	others := on("others", "n1")
	others.Spec.SchedulerName = "default-scheduler"
	p := newPool(t, blue("a-day-later", "a"), blue("n1", "a"), on("web", "n1"), daemon, done, others)
	p.lookAt(newYear)
	if n := p.node("n1"); n.Annotations[clusterview.ValidUntilAnnotation] != "2018-01-20T23:59:59Z" || n.Annotations[clusterview.UpSinceAnnotation] != "2018-01-01T00:00:00Z first" {
		t.Fatalf("it has the annotations %v", n.Annotations)
	}
	end := newYear.Add(20*day - time.Second)
	p.lookAt(end.Add(-time.Second))
	if p.node("n1").Spec.Unschedulable {
		t.Fatal("it is cordoned before its end")
	}
	p.lookAt(end)
	if n := p.node("n1"); !n.Spec.Unschedulable || n.Annotations[clusterview.CordonedForEndAnnotation] != "2018-01-20T23:59:59Z" || rebootDue(n) != "" {
		t.Fatalf("it is cordoned: %t, %v, %s", n.Spec.Unschedulable, n.Annotations, rebootDue(n))
	}
	p.lookAt(end.Add(time.Minute))
	if n := p.node("n1"); n.Annotations[clusterview.RebootDueAnnotation] != "" || rebootDue(n) != "" {
		t.Fatalf("it is left to be rebooted with a pod on it: %v, %s", n.Annotations, rebootDue(n))
	}
	if err := p.api.Delete(t.Context(), on("web", "n1")); err != nil {
		t.Fatal(err)
	}
	p.lookAt(end.Add(2 * time.Minute))
	if n := p.node("n1"); n.Annotations[clusterview.RebootDueAnnotation] != "2018-01-21T00:01:59Z" || rebootDue(n) != "True Drained" {
		t.Fatalf("it is not left to be rebooted: %v, %s", n.Annotations, rebootDue(n))
	}
	p.lookAt(end.Add(day)) // nobody reboots it, and the other one of its zone waits, which has ended as well
	if n := p.node("a-day-later"); n.Spec.Unschedulable {
		t.Fatal("two of a zone are out of service")
	}
	p.reboot("n1", "second")
	p.lookAt(end.Add(day + time.Minute))
	n := p.node("n1")
	if n.Spec.Unschedulable || n.Annotations[clusterview.RebootDueAnnotation]+n.Annotations[clusterview.CordonedForEndAnnotation] != "" || rebootDue(n) != "False Rebooted" ||
		n.Annotations[clusterview.UpSinceAnnotation] != "2018-01-22T00:00:59Z second" || n.Annotations[clusterview.ValidUntilAnnotation] != "2018-02-11T23:59:59Z" {
		t.Fatalf("it is not back: %t, %v, %s", n.Spec.Unschedulable, n.Annotations, rebootDue(n))
	}
	if n := p.node("a-day-later"); !n.Spec.Unschedulable {
		t.Error("the other one of the zone has no turn")
	}
	close(p.events.Events)
	var reasons []string
	for e := range p.events.Events {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	if want := "NodeEnded RebootDue NodeEnded NodeBack"; strings.Join(reasons, " ") != want {
		t.Errorf("the Events are %s, want %s", reasons, want)
	}
}

// A node whose pods cannot be moved is left to be rebooted when time is up, and says how many are left.
func TestPodsThatCannotBeMoved(t *testing.T) {
	p := newPool(t, blue("n1", "a"), on("stuck", "n1"))
	p.lookAt(newYear)
	end := newYear.Add(21 * day)
	p.lookAt(end)
	p.lookAt(end.Add(59 * time.Minute))
	if due := rebootDue(p.node("n1")); due != "" {
		t.Fatalf("it is left to be rebooted before time is up: %s", due)
	}
	p.lookAt(end.Add(time.Hour))
	n := p.node("n1")
	if due := rebootDue(n); due != "True DrainTimeout" || !strings.HasSuffix(n.Status.Conditions[len(n.Status.Conditions)-1].Message, "Pods that could not be moved in 1h0m0s: 1.") {
		t.Errorf("its condition is %+v", n.Status.Conditions)
	}
}

// What others have written stays.
func TestWhatIsOthersStays(t *testing.T) {
	theirs, cordoned, other := blue("theirs", "a"), blue("cordoned", "b"), blue("other", "c")
	theirs.Annotations = map[string]string{clusterview.ValidUntilAnnotation: "2018-01-05T00:00:00Z"}
	odd := blue("odd", "d")
	odd.Annotations = map[string]string{clusterview.ValidUntilAnnotation: "tomorrow"}
	claimed, early := blue("claimed", "e"), blue("early", "f")
	clusterview.SetEnd(claimed, clusterview.ByNodeClaim, newYear.Add(30*day))
	clusterview.SetEnd(early, clusterview.ByNodeClaim, newYear.Add(12*time.Hour))
	cordoned.Spec.Unschedulable = true
	other.Labels["pool"] = "green"
	p := newPool(t, theirs, cordoned, other, odd, claimed, early)
	p.lookAt(newYear)
	ends := p.ends()
	for name, want := range map[string]string{
		"theirs": "2018-01-05T00:00:00Z", "odd": "tomorrow", "other": "", "early": "2018-01-01T12:00:00Z",
	} {
		if ends[name] != want {
			t.Errorf("%s ends %q, want %q", name, ends[name], want)
		}
	}
	if end := ends["claimed"]; end < "2018-01-02" || end >= "2018-01-22" {
		t.Errorf("a node whose NodeClaim expires after 30 days ends %s", end)
	}
	end, err := time.Parse(time.RFC3339, ends["cordoned"])
	if err != nil {
		t.Fatal(err)
	}
	p.lookAt(end)
	if n := p.node("theirs"); n.Spec.Unschedulable {
		t.Error("a node whose end somebody else has written is cordoned")
	}
	p.lookAt(end.Add(time.Minute))
	p.reboot("cordoned", "second")
	p.lookAt(end.Add(2 * time.Minute))
	if n := p.node("cordoned"); !n.Spec.Unschedulable || rebootDue(n) != "False Rebooted" {
		t.Errorf("a node that was cordoned before is not so any more: %t, %s", n.Spec.Unschedulable, rebootDue(n))
	}
}

// A node that is rebooted before its end begins anew, and one that somebody gives another end has that.
func TestRebootBeforeTheEnd(t *testing.T) {
	p := newPool(t, blue("n1", "a"))
	p.lookAt(newYear)
	p.reboot("n1", "second")
	p.lookAt(newYear.Add(10 * day))
	if end := p.ends()["n1"]; end != "2018-01-31T23:59:59Z" {
		t.Errorf("it ends %s", end)
	}
	p.change("n1", func(n *corev1.Node) { n.Annotations[clusterview.ValidUntilAnnotation] = "2018-03-01T00:00:00Z" })
	p.lookAt(newYear.Add(10*day + time.Minute))
	if end := p.ends()["n1"]; end != "2018-03-01T00:00:00Z" {
		t.Errorf("it ends %s, and not when somebody has said", end)
	}
}

// A cache that does not show yet that a node was cordoned does not have another one of its zone follow.
func TestStaleCache(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a"))
	p.lookAt(newYear)
	stale := p.nodes()
	p.Client = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if nodes, is := list.(*corev1.NodeList); is {
				nodes.Items = nil
				for i := range stale {
					nodes.Items = append(nodes.Items, *stale[i].DeepCopy())
					p.report(&nodes.Items[i])
				}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	end := newYear.Add(21 * day)
	for i := range 5 {
		p.lookAt(end.Add(time.Duration(i) * time.Second))
	}
	out := 0
	for _, n := range p.nodes() {
		if n.Spec.Unschedulable {
			out++
		}
	}
	if out != 1 {
		t.Errorf("%d nodes of a zone are out of service", out)
	}
}

// An API server that answers nothing changes nothing, and the next look goes on.
func TestErrors(t *testing.T) {
	p := newPool(t, blue("n1", "a"))
	broken := errors.New("the API server is starting")
	p.Client = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
	})
	if err := p.look(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	p.Client = p.reporting()
	p.lookAt(newYear)
	if p.ends()["n1"] == "" {
		t.Error("it has no end")
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"good":                       {func(*Options) {}, ""},
		"a lifetime of nothing":      {func(o *Options) { o.Rule.Lifetime = 0 }, "0s is no time for which a node runs at most: use 1h0m0s to 8784h0m0s"},
		"longer at least than most":  {func(o *Options) { o.Rule.Least = 22 * day }, "528h0m0s is no time for which a node runs at least: use 0s to 504h0m0s"},
		"negative":                   {func(o *Options) { o.Rule.Least = -1 }, "-1ns is no time for which a node runs at least"},
		"drained for a second":       {func(o *Options) { o.DrainFor = time.Second }, "1s is no time for which the pods of a node are waited for: use 1m0s to 24h0m0s"},
		"none of a domain at a time": {func(o *Options) { o.Rule.PerDomain = 0 }, "0 is no bound of the nodes of a domain that end at once: use 1 to 1000"},
	} {
		o := options(t)
		tc.change(&o)
		err := o.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
