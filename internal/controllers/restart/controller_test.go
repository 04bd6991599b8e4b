// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/pkg/placement/reschedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{
		Mode: Enabled, Schedulers: []string{"espalier-scheduler"}, Records: "kube-system", Namespaces: labels.Everything(), AtOnce: 5,
		Policy: reschedule.Policy{Delay: 30 * time.Second, Function: reschedule.Exponential, MaxDelay: 30 * time.Minute, Interval: time.Hour, Unlimited: true},
	}
}

func TestOptions(t *testing.T) {
	controllertest.WantInvalid(t, options, map[string]func(*Options){
		`"Maybe" is no mode: use Enabled or ByPolicy`:                               func(o *Options) { o.Mode = "Maybe" },
		`"Linear" is no function of delays: use Constant, Exponential or Fibonacci`: func(o *Options) { o.Policy.Function = "Linear" },
		"0s is no first delay: use 1s to 1h0m0s":                                    func(o *Options) { o.Policy.Delay = 0 },
		"10s is no longest delay: use 30s to 1h0m0s":                                func(o *Options) { o.Policy.MaxDelay = 10 * time.Second },
		"2h0m0s is no interval: use 1m0s to 1h0m0s":                                 func(o *Options) { o.Policy.Interval = 2 * time.Hour },
		"-1 is no number of attempts: use 1 to 1000, or 0 for any":                  func(o *Options) { o.Policy.Attempts = -1 },
		"0 is no bound of Moves at once: use 1 to 1000":                             func(o *Options) { o.AtOnce = 0 },
	})
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
		since, fails := failingSince(&corev1.Pod{Status: tc.status}, at(9).Add(30*time.Second))
		if fails != (tc.since >= 0) || fails && !since.Equal(at(tc.since).Time) {
			t.Errorf("%s: since %s: %t", name, since, fails)
		}
	}
}

// rig is a controller beside a Deployment of three with pods on the nodes bad, bad and good, of which those on bad fail since the beginning.
type rig struct {
	*controllertest.Rig
	*Controller
}

// marked is a record that has a node marked for a revision of a workload.
func marked(workload, revision, node string) map[string]string {
	const record = `{"version":1,"revisions":[{"workload":%q,"revision":%q,"nodes":[],"family":"","regarding":{},"marked":[%q]}]}`
	return map[string]string{"failures.json": fmt.Sprintf(record, workload, revision, node)}
}

func newRig(t *testing.T, o Options, change func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod)) *rig {
	t.Helper()
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-scheduler-failures"}, Data: marked("ns/Deployment.apps/web", "1", "bad"),
	}
	d, set := controllertest.Deployment("web", 3, 1)
	objects := []client.Object{
		record, d, set,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bad", Labels: map[string]string{corev1.LabelHostname: "bad.example.com"}}},
	}
	for i, node := range []string{"bad", "bad", "good"} {
		p := &corev1.Pod{
			ObjectMeta: controllertest.Named(fmt.Sprint("web-1-", i)), Spec: corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: node},
			Status: corev1.PodStatus{
				Phase:             corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(begin)}},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}},
			},
		}
		p.Labels, p.OwnerReferences = map[string]string{"pod-template-hash": "1"}, controllertest.OwnedBy("ReplicaSet", "web-1")
		change(record, d, p)
		objects = append(objects, p)
	}
	r := &rig{Rig: controllertest.New(t, begin, controllertest.Builder(t, objects...))}
	r.Controller = &Controller{Client: r.Server, API: r.Server, Clock: r.Time, Options: o, failing: make(failing)}
	return r
}

func plain(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod) {}

// after looks once some time later, and wants these pods to have Moves.
func (r *rig) after(d time.Duration, want ...string) {
	r.Helper()
	r.Time.Step(d)
	r.Must(r.look(r.Context()))
	r.wantMoves(want...)
}

func (r *rig) wantMoves(want ...string) {
	r.Helper()
	var got []string
	for _, m := range r.Moves() {
		got = append(got, m.Name)
		if a := m.Spec.Avoid; a == nil || a.TopologyKey != corev1.LabelHostname || *a.Value != "bad.example.com" || m.Spec.Reason != placementv1alpha1.MoveRestart {
			r.Errorf("%s is %+v", m.Name, m.Spec)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("%s are moved, want %s", got, want)
	}
}

// wantTrouble looks once an hour later, and wants an error that says why, and these pods to have Moves all the same.
func (r *rig) wantTrouble(why string, want ...string) {
	r.Helper()
	r.Time.Step(time.Hour)
	if err := r.look(r.Context()); err == nil || !strings.Contains(err.Error(), why) {
		r.Errorf("the error is %v", err)
	}
	r.wantMoves(want...)
}

// end ends a Move in a phase, and has it be as old as it is by the clock.
func (r *rig) end(name string, phase placementv1alpha1.MovePhase) *placementv1alpha1.Move {
	r.Helper()
	now := metav1.NewTime(r.Time.Now())
	m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	controllertest.Change(r.Rig, m, func(m *placementv1alpha1.Move) {
		m.CreationTimestamp, m.Status.Phase, m.Status.EndedAt = now, phase, &now
	})
	if phase == placementv1alpha1.MoveDone {
		r.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: m.Spec.Pod.Name}})
	}
	return m
}

// After the delay one pod is replaced, and the next one when that has ended and the longer delay is over.
func TestRestarts(t *testing.T) {
	r := newRig(t, options(), plain)
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0")
	r.after(0, "web-1-0") // the surge is one
	r.end("web-1-0", placementv1alpha1.MoveDone)
	r.after(29*time.Second, "web-1-0")         // 59 s
	r.after(time.Second, "web-1-0", "web-1-1") // 60 s after it failed
}

// A record that cannot be read is said, and holds up no pods of the other schedulers.
func TestRestartsBesideARecordThatCannotBeRead(t *testing.T) {
	o := options()
	o.Schedulers = []string{"broken", "espalier-scheduler"}
	r := newRig(t, o, plain)
	r.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "broken-failures"}, Data: map[string]string{"failures.json": "{"}})
	r.wantTrouble("broken-failures", "web-1-0")
}

// An owner that cannot be read is said, and holds up no pods of others.
func TestRestartsBesideAnOwnerThatCannotBeRead(t *testing.T) {
	r := newRig(t, options(), func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
		if p.Name == "web-1-0" { // it comes first
			p.OwnerReferences = controllertest.OwnedBy("ReplicaSet", "broken-1")
		}
	})
	r.API = interceptor.NewClient(r.Server, interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if key.Name == "broken-1" {
				return errors.New("in trouble")
			}
			return to.Get(ctx, key, into, options...)
		},
	})
	r.wantTrouble("in trouble", "web-1-1")
}

// A pod that was handed back has failed since then, and a Move that was not begun is no attempt.
func TestRestartsThatCameToNothing(t *testing.T) {
	for _, phase := range []placementv1alpha1.MovePhase{placementv1alpha1.MoveUndone, placementv1alpha1.MoveFailed} {
		r := newRig(t, options(), func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
			if p.Name == "web-1-1" {
				p.Spec.NodeName = "good"
			}
		})
		r.after(time.Hour, "web-1-0")
		r.end("web-1-0", phase)
		r.after(time.Minute-time.Second, "web-1-0")
		r.after(time.Second, "web-1-0", "web-1-0-1")
	}
}

// Nothing is read of pods that cannot have a Move now: a bad node may fail pods of hundreds of workloads.
func TestRequestsOfPodsThatWait(t *testing.T) {
	o := options()
	o.AtOnce = 1
	r := newRig(t, o, plain)
	gets := 0
	r.API = interceptor.NewClient(r.Server, interceptor.Funcs{
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
	recorded := func(workload, revision, node string) func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod) {
		return func(c *corev1.ConfigMap, _ *appsv1.Deployment, _ *corev1.Pod) {
			c.Data = marked(workload, revision, node)
		}
	}
	pod := func(change func(*corev1.Pod)) func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod) {
		return func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) { change(p) }
	}
	for name, change := range map[string]func(*corev1.ConfigMap, *appsv1.Deployment, *corev1.Pod){
		"no node is marked": func(c *corev1.ConfigMap, _ *appsv1.Deployment, _ *corev1.Pod) {
			c.Data["failures.json"] = strings.Replace(c.Data["failures.json"], `"bad"`, ``, 1)
		},
		"it is marked for another revision": recorded("ns/Deployment.apps/web", "2", "bad"),
		"it is marked for another workload": recorded("elsewhere/Deployment.apps/web", "1", "bad"),
		"a DaemonSet's pods":                pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }),
		"another scheduler":                 pod(func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }),
		"somebody else's pods":              pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Rollout" }),
		"another namespace":                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			if change == nil {
				change, o.Namespaces = plain, labels.SelectorFromSet(labels.Set{"team": "db"})
			}
			newRig(t, o, change).after(time.Hour)
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
			p := &placementv1alpha1.PlacementPolicy{ObjectMeta: controllertest.Named("p")}
			p.Spec.Moves = &placementv1alpha1.Moves{Restart: tc.says}
			r.Create(p)
			r.after(time.Minute, tc.want...)
		})
	}
}

// newStateful is a rig whose pods are of a StatefulSet.
func newStateful(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, options(), func(c *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
		c.Data = marked("ns/StatefulSet.apps/db", "db-7", "bad")
		p.OwnerReferences = controllertest.OwnedBy("StatefulSet", "db")
		p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-7"}
	})
	r.Create(&appsv1.StatefulSet{ObjectMeta: controllertest.Named("db")})
	return r
}

// A pod of a StatefulSet that fails where its node is faulty is evicted first, one at a time and with the delays that Deployments have.
func TestRestartsOfAStatefulSet(t *testing.T) {
	r := newStateful(t)
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0-web")
	r.after(0, "web-1-0-web")
	if m := r.end("web-1-0-web", placementv1alpha1.MoveDone); !m.Spec.EvictsFirst() || m.Spec.StatefulSet.UID != "db" || m.OwnerReferences[0].Kind != "StatefulSet" {
		t.Errorf("it is %+v of %v", m.Spec, m.OwnerReferences)
	}
	r.after(29*time.Second, "web-1-0-web")
	r.after(time.Second, "web-1-0-web", "web-1-1-web")
}

// A pod of a Deployment that allows no surge is evicted first.
func TestRestartsWithoutASurge(t *testing.T) {
	r := newRig(t, options(), func(_ *corev1.ConfigMap, d *appsv1.Deployment, _ *corev1.Pod) {
		d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	})
	r.after(time.Minute, "web-1-0")
	if m := r.Moves()[0]; !m.Spec.EvictsFirst() || m.Spec.ReplicaSet.UID != "web-1" || m.OwnerReferences[0].UID != "web" {
		t.Errorf("it is %+v of %v", m.Spec, m.OwnerReferences)
	}
}

// A pod that two disruption budgets select stays: the API server would never evict it. It is looked at again when one of them is gone.
func TestNoRestartsUnderTwoBudgets(t *testing.T) {
	r := newRig(t, options(), plain)
	two := controllertest.Budget("two", "", 0)
	r.Create(controllertest.Budget("one", "", 0), two)
	r.after(time.Hour)
	r.Delete(two)
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0")
}

// A budget that wants each pod never lets one go that fails. No Move waits for it, as one of those that may be made at once. One that says so lets it go.
func TestNoRestartsThatABudgetNeverAllows(t *testing.T) {
	r := newStateful(t)
	one := controllertest.Budget("one", "", 0)
	r.Create(one)
	r.after(time.Hour)
	controllertest.Change(r.Rig, one, func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) })
	r.after(time.Second, "web-1-0-web")
}

// A pod on a node that does not answer is not evicted first: nobody could end it.
func TestNoRestartsOnANodeThatDoesNotAnswer(t *testing.T) {
	r := newStateful(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}
	controllertest.Change(r.Rig, node, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	})
	r.after(time.Hour)
	controllertest.Change(r.Rig, node, func(n *corev1.Node) { n.Spec.Taints = nil })
	r.after(time.Minute, "web-1-0-web")
}
