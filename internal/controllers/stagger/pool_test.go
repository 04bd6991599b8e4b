// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"context"
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

// restart has another controller go on, which has seen the nodes that there are, and remembers nothing else.
func (p *pool) restart(o Options) {
	p.Controller = &Controller{Client: p.reporting(), Events: p.events, Clock: p.clock, Options: o, fresh: make(map[string]bool), freshSince: p.clock.Now()}
	for _, n := range p.nodes() {
		p.fresh[n.Name] = true
	}
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
