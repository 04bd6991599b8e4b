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

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// newYear is when the pools of the tests begin.
var newYear = time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)

// pool is a controller of some nodes, by a clock that a test sets.
type pool struct {
	*controllertest.Rig
	*Controller
	// nodesAt is what the clocks of the nodes say, by which they report; the zero time for what the controller's says.
	nodesAt time.Time
	// unready is that no node is ready.
	unready bool
}

func options(t *testing.T) Options {
	t.Helper()
	schedule, err := stagger.ParseSchedule("mon,tue,wed,thu,fri,sat,sun", time.UTC)
	controllertest.Must(t, err)
	return Options{
		Nodes: labels.SelectorFromSet(labels.Set{"pool": "blue"}), Schedule: schedule, Domain: corev1.LabelTopologyZone, DrainFor: time.Hour,
		Rule: stagger.Rule{Lifetime: 21 * day, Least: day, PerDomain: 1}, Schedulers: []string{"espalier-scheduler"},
	}
}

func newPool(t *testing.T, objects ...client.Object) *pool {
	t.Helper()
	p := &pool{Rig: controllertest.New(t, newYear, controllertest.Builder(t, objects...))}
	p.restart(options(t))
	return p
}

// restart has another controller go on, which has seen the nodes that there are, and remembers nothing else.
func (p *pool) restart(o Options) {
	p.Controller = &Controller{Client: p.reporting(), Events: p.Said, Clock: p.Time, Options: o, fresh: make(map[string]bool), freshSince: p.Time.Now()}
	for _, n := range p.nodes() {
		p.fresh[n.Name] = true
	}
}

// reporting is the API server with nodes that report all the while.
func (p *pool) reporting() client.Client {
	return interceptor.NewClient(p.Server, interceptor.Funcs{
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
		at = p.Time.Now()
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
	p := &corev1.Pod{
		ObjectMeta: controllertest.Named(name),
		Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "espalier-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	p.OwnerReferences = controllertest.OwnedBy("ReplicaSet", "rs")
	return p
}

func (p *pool) lookAt(now time.Time) *pool {
	p.Helper()
	p.Time.SetTime(now)
	p.Must(p.look(p.Context()))
	return p
}

func (p *pool) node(name string) *corev1.Node {
	p.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Get(n)
	return n
}

func (p *pool) nodes() []corev1.Node {
	p.Helper()
	var list corev1.NodeList
	p.Must(p.Server.List(p.Context(), &list))
	return list.Items
}

// change changes a node as somebody else does.
func (p *pool) change(name string, change func(*corev1.Node)) {
	p.Helper()
	controllertest.Change(p.Rig, p.node(name), change)
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

// A cache that does not show yet that a node was cordoned does not have another one of its zone follow.
func TestStaleCache(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a")).lookAt(newYear)
	stale := p.nodes()
	p.Client = interceptor.NewClient(p.Server, interceptor.Funcs{
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
	p.Client = interceptor.NewClient(p.Server, interceptor.Funcs{
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

// Nodes of a pool that is being made wait for each other, so that they have their ends together: a minute at most, and not for those that are
// back.
func TestNodesOfAPoolThatGrowsWaitForEachOther(t *testing.T) {
	p := newPool(t)
	ended := func() int {
		return len(slices.DeleteFunc(p.nodes(), func(n corev1.Node) bool { return n.Annotations[clusterview.ValidUntilAnnotation] == "" }))
	}
	for i, want := range []int{0, 0, 0, 3, 3, 4} {
		if i < 3 || i == 4 {
			p.Create(blue(fmt.Sprint("n", i), "zone-0"))
		}
		if p.lookAt(newYear.Add(time.Duration(i) * every)); ended() != want {
			t.Errorf("at look %d %d nodes have ends, want %d", i, ended(), want)
		}
	}
	for i := range 13 { // one comes before each look
		p.Create(blue(fmt.Sprint("m", i), "zone-0"))
		if p.lookAt(newYear.Add(time.Hour + time.Duration(i)*every)); (ended() > 4) != (i == 12) {
			t.Errorf("at look %d %d nodes have ends", i, ended())
		}
	}
}

// Where the controller's clock jumps, no node is taken out of service, and no end changes: the nodes themselves say otherwise, or run since a
// time that is still to come.
func TestAClockThatJumps(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a"), blue("n3", "b")).lookAt(newYear)
	before := p.ends()
	for _, jump := range []time.Duration{365 * day, -365 * day, 22 * day, -22 * day} {
		p.nodesAt = newYear
		p.lookAt(newYear.Add(jump))
		p.lookAt(newYear.Add(jump + time.Minute))
		p.nodesAt = time.Time{}
		p.lookAt(newYear.Add(time.Minute))
		for _, n := range p.nodes() {
			if n.Spec.Unschedulable {
				t.Errorf("after a jump of %v node %s is out of service", jump, n.Name)
			}
		}
		if after := p.ends(); !maps.Equal(after, before) {
			t.Errorf("after a jump of %v the ends are %v, and were %v", jump, after, before)
		}
	}
	if said := p.Told(); len(said) == 0 || !strings.HasPrefix(said[0], "Warning NodeEndNotReported ") {
		t.Errorf("it is told %q", said)
	}
}

// What was said of a node is forgotten with it: nodes come and go for as long as a controller runs.
func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a")).lookAt(newYear)
	p.nodesAt = newYear
	p.lookAt(newYear.Add(365 * day))
	if len(p.said) != 2 {
		t.Fatalf("it has said it of %v", p.said)
	}
	p.Delete(p.node("n1"))
	p.lookAt(newYear.Add(365 * day))
	if p.said["n1"] || !p.said["n2"] {
		t.Errorf("it remembers %v", p.said)
	}
}

// Where it jumps while pods are waited for, they still are, as long as the node is ready. Of one that is not, nothing else is to be heard.
func TestAClockThatJumpsInADrain(t *testing.T) {
	p := newPool(t, blue("n1", "a"), on("stuck", "n1")).lookAt(newYear)
	end := newYear.Add(21 * day)
	p.lookAt(end)
	p.nodesAt = end
	p.lookAt(end.Add(day))
	if due := rebootDue(p.node("n1")); due != "" {
		t.Errorf("after a jump it is left to be rebooted: %s", due)
	}
	p.unready = true
	p.lookAt(end.Add(day))
	if due := rebootDue(p.node("n1")); due != "True DrainTimeout" {
		t.Errorf("it does not answer, and its condition is %q", due)
	}
}

func TestValidate(t *testing.T) {
	controllertest.WantInvalid(t, func() Options { return options(t) }, map[string]func(*Options){
		"0s is no time for which a node runs at most: use 1h0m0s to 8784h0m0s":           func(o *Options) { o.Rule.Lifetime = 0 },
		"528h0m0s is no time for which a node runs at least: use 0s to 504h0m0s":         func(o *Options) { o.Rule.Least = 22 * day },
		"-1ns is no time for which a node runs at least: use 0s to 504h0m0s":             func(o *Options) { o.Rule.Least = -1 },
		"1s is no time for which the pods of a node are waited for: use 1m0s to 24h0m0s": func(o *Options) { o.DrainFor = time.Second },
		"0 is no bound of the nodes of a domain that end at once: use 1 to 1000":         func(o *Options) { o.Rule.PerDomain = 0 },
	})
}
