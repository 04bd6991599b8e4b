// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a controller beside pods on the node n, which is silent from the beginning on.
type rig struct {
	*controllertest.Rig
	*Controller
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	node := silent()
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: begin}}}
	objects = append(objects, node, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	revision := func(n string) map[string]string { return map[string]string{"deployment.kubernetes.io/revision": n} }
	for name, surge := range map[string]int32{"web": 1, "one": 0} {
		d, first := controllertest.Deployment(name, 3, surge)
		second := first.DeepCopy()
		second.Name, second.UID = name+"-2", d.UID+"-2"
		d.Annotations, first.Annotations, second.Annotations = revision("2"), revision("1"), revision("2")
		objects = append(objects, d, first, second)
	}
	builder := controllertest.Builder(t, objects...)
	for field, of := range indices {
		builder = builder.WithIndex(&corev1.Pod{}, field, of)
	}
	r := &rig{Rig: controllertest.New(t, begin, builder)}
	r.Controller = &Controller{Client: r.Server, API: r.Server, Events: r.Said, Clock: r.Time, Options: Options{Schedulers: []string{"espalier-scheduler"}, AtOnce: 5}}
	return r
}

// silent is the node that does not answer, by its name.
func silent() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}} }

// policyFor is for the pods of an app.
func policyFor(app string, d *placementv1alpha1.Disconnect) *placementv1alpha1.PlacementPolicy {
	p := &placementv1alpha1.PlacementPolicy{ObjectMeta: controllertest.Named(app)}
	p.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
	p.Spec.Disconnect = d
	return p
}

// pod is one of an app on the node, which tolerates for 300 seconds that this does not answer.
func pod(name, app, kind, owner string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: controllertest.Named(name)}
	p.Labels, p.OwnerReferences = map[string]string{"app": app}, controllertest.OwnedBy(kind, owner)
	p.Spec.NodeName, p.Spec.SchedulerName, p.Status.Phase = "n", "espalier-scheduler", corev1.PodRunning
	p.Spec.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// pod is the one of a name.
func (r *rig) pod(name string) *corev1.Pod {
	r.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	r.Get(p)
	return p
}

// tolerates says for how long a pod tolerates that its node does not answer.
func (r *rig) tolerates(name string) string {
	r.Helper()
	p := r.pod(name)
	if len(p.Spec.Tolerations) == 2 && *p.Spec.Tolerations[0].TolerationSeconds != 300 {
		r.Errorf("pod %s tolerates for another time that its node is not ready", name)
	}
	switch s := tolerationOf(p); {
	case s == nil:
		return "not"
	case s.TolerationSeconds == nil:
		return "without end"
	default:
		return fmt.Sprint(*s.TolerationSeconds)
	}
}

// wantTolerates wants a pod to tolerate it for that.
func (r *rig) wantTolerates(when, name, want string) {
	r.Helper()
	if got := r.tolerates(name); got != want {
		r.Errorf("%s: pod %s tolerates it %s, want %s", when, name, got, want)
	}
}

// after lets time pass, and looks.
func (r *rig) after(d time.Duration) {
	r.Helper()
	r.Time.SetTime(begin.Add(d))
	for range 2 { // the second one finds what the first one did
		r.Must(r.look(r.Context()))
	}
}

// moved are the pods of namespace ns for which there are Moves.
func (r *rig) moved() (pods []string) {
	r.Helper()
	for _, m := range r.Moves() {
		if m.Namespace != "ns" {
			continue
		}
		if m.Spec.Reason != placementv1alpha1.MoveDisconnect || m.Spec.Keep != placementv1alpha1.KeepOriginal {
			r.Errorf("Move %s is %+v", m.Name, m.Spec)
		}
		pods = append(pods, m.Spec.Pod.Name)
	}
	return pods
}

// wantMoved wants these pods to be moved, and no others.
func (r *rig) wantMoved(want ...string) {
	r.Helper()
	if got := r.moved(); !slices.Equal(got, want) {
		r.Errorf("the pods %q are moved, want %q", got, want)
	}
}

// answers has the node answer again.
func (r *rig) answers() {
	r.Helper()
	controllertest.Change(r.Rig, silent(), func(n *corev1.Node) { n.Spec.Taints = nil })
}

var keeps = &placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(30)), LostAfterSeconds: 600, Keep: placementv1alpha1.KeepOriginal}

// Which pods are kept: those of Deployments and StatefulSets with a policy that says so, if they can be replaced one at a time.
func TestWhoIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
		move bool
	}{
		"of a Deployment":              {pod("p", "web", "ReplicaSet", "web-2"), "without end", true},
		"of an older revision":         {pod("p", "web", "ReplicaSet", "web-1"), "300", false},
		"of one that wants no surge":   {pod("p", "web", "ReplicaSet", "one-2"), "300", false},
		"of a ReplicaSet that is gone": {pod("p", "web", "ReplicaSet", "gone"), "300", false},
		"of a StatefulSet":             {pod("p", "web", "StatefulSet", "db"), "without end", false},
		"of a Job":                     {pod("p", "web", "Job", "j"), "300", false},
		"of nobody":                    {pod("p", "web", "", "", func(p *corev1.Pod) { p.OwnerReferences = nil }), "300", false},
		"of another scheduler":         {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), "300", false},
		"kept for another scheduler": {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Annotations = "other", map[string]string{clusterview.UnreachableSecondsAnnotation: "300"}
			p.Spec.Tolerations[1].TolerationSeconds = nil
		}), "without end", false},
		"of no policy":                  {pod("p", "other", "ReplicaSet", "web-2"), "300", false},
		"of a policy that says nothing": {pod("p", "plain", "ReplicaSet", "web-2"), "300", false},
		"on another node":               {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Spec.NodeName = "m" }), "300", false},
		"that has not started":          {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), "300", false},
		"that tolerates it for ever":    {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Spec.Tolerations[1].TolerationSeconds = nil }), "without end", true},
		"that does not tolerate it":     {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Spec.Tolerations = nil }), "not", false},
		"whose first toleration is another one": {pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) {
			p.Spec.Tolerations = append([]corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))}}, p.Spec.Tolerations...)
		}), "without end", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, policyFor("web", keeps), policyFor("plain", nil), tc.pod)
			r.after(time.Second)
			r.wantTolerates("at once", "p", tc.want)
			r.wantMoved()
			r.after(30 * time.Second)
			if got := len(r.moved()) > 0; got != tc.move {
				t.Errorf("it is moved: %t", got)
			}
			said := r.Told()
			if n := len(said); (n == 1) != (name == "of a StatefulSet") || n > 1 {
				t.Errorf("there are %d events", n)
			}
			if len(said) == 1 && (!strings.Contains(said[0], "PodKept Pod p stays on node n, which does not answer.") || !strings.Contains(said[0], "by 2026-01-01T12:10:00Z")) {
				t.Errorf("the event is %q", said)
			}
		})
	}
}

// What is lost tolerates it no more, so that Kubernetes deletes it; what is back, or is kept no more, tolerates it as before.
func TestWhatBecomesOfThoseThatAreKept(t *testing.T) {
	of := func(kind, owner string) *corev1.Pod { return pod("p", "web", kind, owner) }
	drains := func(m *placementv1alpha1.Move) { m.Spec.Reason, m.Spec.Keep = placementv1alpha1.MoveDrain, "" }
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		at     time.Duration
		change func(*rig)
		want   string
	}{
		"still silent":                  {of("StatefulSet", "db"), 599 * time.Second, func(*rig) {}, "without end"},
		"no Move has taken it":          {of("ReplicaSet", "web-2"), 299 * time.Second, func(*rig) {}, "without end"},
		"no Move has taken it for long": {of("ReplicaSet", "web-2"), 300 * time.Second, func(*rig) {}, "0"},
		"lost, of a StatefulSet":        {of("StatefulSet", "db"), 600 * time.Second, func(*rig) {}, "0"},
		"back":                          {of("ReplicaSet", "web-2"), 40 * time.Second, (*rig).answers, "300"},
		"back, of a StatefulSet":        {of("StatefulSet", "db"), 40 * time.Second, (*rig).answers, "300"},
		"the policy is gone":            {of("ReplicaSet", "web-2"), 40 * time.Second, func(r *rig) { r.Delete(policyFor("web", nil)) }, "300"},
		"a policy cannot be read":       {of("StatefulSet", "db"), 40 * time.Second, (*rig).breakPolicy, "without end"},
		"and it is back":                {of("StatefulSet", "db"), 40 * time.Second, func(r *rig) { r.breakPolicy(); r.answers() }, "300"},
		"the policy waits for longer":   {of("StatefulSet", "db"), 900 * time.Second, func(r *rig) { r.replace(keptFor(time.Hour)) }, "without end"},
		"the Deployment is rolled":      {of("ReplicaSet", "web-2"), 40 * time.Second, func(r *rig) { r.roll("web", "3") }, "300"},
		"its Move has it, and is lost":  {of("ReplicaSet", "web-2"), 600 * time.Second, (*rig).handOver, "0"},
		"its Move has it":               {of("ReplicaSet", "web-2"), 599 * time.Second, (*rig).handOver, "without end"},
		"its Move has it, and is back":  {of("ReplicaSet", "web-2"), 599 * time.Second, func(r *rig) { r.handOver(); r.answers() }, "300"},
		"another Move has it":           {of("ReplicaSet", "web-2"), 100 * time.Second, func(r *rig) { r.handOver(); r.changeMove("p", drains) }, "300"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, policyFor("web", keeps), tc.pod)
			r.after(31 * time.Second)
			r.wantTolerates("before", "p", "without end")
			tc.change(r)
			r.after(tc.at)
			r.wantTolerates("after", "p", tc.want)
			if _, marked := r.pod("p").Annotations[clusterview.UnreachableSecondsAnnotation]; marked != (tc.want != "300") {
				t.Errorf("it is marked: %t", marked)
			}
		})
	}
}

// breakPolicy makes a policy that comes before the others, and whose selector no API server should let pass.
func (r *rig) breakPolicy() {
	r.Helper()
	p := policyFor("broken", keeps)
	p.Spec.Priority = 100
	p.Spec.PodSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	r.Create(p)
}

// keptFor is a policy for the pods of web that are kept for so long.
func keptFor(lostAfter time.Duration) *placementv1alpha1.PlacementPolicy {
	d := keeps.DeepCopy()
	d.LostAfterSeconds = int32(lostAfter / time.Second)
	return policyFor("web", d)
}

// replace has another object in the place of one that has its name.
func (r *rig) replace(o client.Object) {
	r.Helper()
	r.Delete(o)
	o.SetUID("another")
	r.Create(o)
}

func (r *rig) roll(deployment, revision string) {
	r.Helper()
	controllertest.Change(r.Rig, &appsv1.Deployment{ObjectMeta: controllertest.Named(deployment)}, func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"deployment.kubernetes.io/revision": revision}
	})
}

// handOver has the Move have the pod.
func (r *rig) handOver() {
	r.Helper()
	controllertest.Change(r.Rig, r.pod("p"), func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1alpha1.SchemeGroupVersion.String(), Kind: "Move", Name: "p", UID: "p", Controller: new(true)}}
	})
}

func (r *rig) changeMove(name string, change func(*placementv1alpha1.Move)) {
	r.Helper()
	controllertest.Change(r.Rig, &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}, change)
}

// Moves that wait for a node take nothing of the budget: their replacements are there.
func TestBudget(t *testing.T) {
	web := func(name string) *corev1.Pod { return pod(name, "web", "ReplicaSet", "web-2") }
	r := newRig(t, policyFor("web", keeps), web("a"), web("b"), web("c"), web("d"))
	r.AtOnce = 2
	r.after(time.Second)
	r.after(30 * time.Second)
	r.wantMoved("a", "b")
	r.changeMove("a", func(m *placementv1alpha1.Move) { m.Status.Phase = placementv1alpha1.MoveWaiting })
	r.after(32 * time.Second)
	r.wantMoved("a", "b", "c")
}

// A cluster in which every node answers costs a look at the nodes.
func TestIdle(t *testing.T) {
	r := newRig(t, pod("p", "web", "ReplicaSet", "web-2"), policyFor("web", keeps))
	r.after(time.Second)
	if r.idle {
		t.Error("there is a pod to be kept")
	}
	r.answers()
	r.after(2 * time.Second)
	if !r.idle {
		t.Error("there is no pod to be kept")
	}
}

// A pod that always tolerates it is replaced, also where its node has been silent for longer than others are kept; what a tenant writes into
// the annotation has nobody write what the API server refuses.
func TestTolerationsOfATenant(t *testing.T) {
	always := pod("p", "web", "ReplicaSet", "web-2", func(p *corev1.Pod) { p.Spec.Tolerations[1].TolerationSeconds = nil })
	r := newRig(t, policyFor("web", keeps), always)
	r.after(time.Hour)
	r.wantMoved("p")
	for name, annotation := range map[string]string{"a number": "1", "none": "soon"} {
		t.Run(name, func(t *testing.T) {
			everything := func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				p.Annotations = map[string]string{clusterview.UnreachableSecondsAnnotation: annotation}
			}
			r := newRig(t, policyFor("web", keeps), pod("p", "web", "ReplicaSet", "web-2", everything), pod("q", "other", "ReplicaSet", "web-2", everything))
			r.after(20 * time.Minute)
			r.answers()
			r.after(21 * time.Minute)
			for _, name := range []string{"p", "q"} {
				r.wantTolerates("at the end", name, "without end")
			}
		})
	}
}

// However many nodes do not answer, and for however long, so many Moves wait for them and no more. A pod beyond that is kept for as long as it would
// have been without a policy.
func TestMovesThatWaitAreBounded(t *testing.T) {
	objects := []client.Object{policyFor("web", keeps), pod("a", "web", "ReplicaSet", "web-2"), pod("b", "web", "ReplicaSet", "web-2")}
	for i := range mostWaiting + 1 {
		m := &placementv1alpha1.Move{
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("m-", i)},
			Spec:       placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect},
			Status:     placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveWaiting},
		}
		if i < 2 {
			m.Status.Phase = placementv1alpha1.MoveDone // it does not count
		}
		objects = append(objects, m)
	}
	r := newRig(t, objects...)
	r.after(time.Second)
	r.after(31 * time.Second)
	r.wantMoved("a")
	r.after(301 * time.Second)
	r.wantTolerates("later", "b", "0")
}

// reporting is another node that has reported some time after the beginning.
func reporting(after time.Duration) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(begin.Add(after))},
	}}}
}

// Where the controller's clock jumps ahead no pod is lost: other nodes say that it is not so late. It is lost when it is as late by theirs.
func TestAClockThatJumps(t *testing.T) {
	const lostAfter = time.Hour
	r := newRig(t, keptFor(lostAfter), pod("p", "web", "StatefulSet", "db"), reporting(0))
	r.after(31 * time.Second)
	for _, step := range []struct {
		at, reported time.Duration
		want         string
	}{
		{24 * time.Hour, 0, "without end"},
		{24 * time.Hour, 49 * time.Minute, "without end"},
		{lostAfter, 55 * time.Minute, "0"},
	} {
		r.Must(r.Server.Status().Update(t.Context(), reporting(step.reported)))
		r.after(step.at)
		r.wantTolerates(fmt.Sprintf("at %s, with a report at %s", step.at, step.reported), "p", step.want)
	}
}

// Where no node reports, as where kubelets only renew their Leases, a pod is lost when the controller itself has seen the time go by.
func TestAClockThatJumpsWhereNoNodeReports(t *testing.T) {
	const lostAfter = 15 * time.Minute
	r := newRig(t, keptFor(lostAfter), pod("p", "web", "StatefulSet", "db"), reporting(-time.Hour))
	r.after(31 * time.Second)
	for r.tolerates("p") != "0" && r.looks < 1000 {
		r.after(24 * time.Hour)
	}
	if seen, want := time.Duration(r.looks)*every, lostAfter-10*time.Minute; seen < want || seen > want+3*every {
		t.Errorf("it is lost when the controller has run for %s, want %s", seen, want)
	}
}
