// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/workload"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with. Each asks the filters of kube-scheduler hundreds of times.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "50"})
	goleak.VerifyTestMain(m)
}

// stamping gives what is made the time of the rig, as an API server does.
type stamping struct {
	client.Client
	r *rig
}

func (s stamping) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(s.r.Time.Now()))
	}
	return s.Client.Create(ctx, o, options...)
}

// Whatever the pods of some Deployments and the budgets are: no budget is ever exceeded, each Move that is carried out leaves fewer pods of its
// Deployment misplaced, by level, and in the end none is where there are too many of the first level.
func TestPropertyMovesKeepToBudgets(t *testing.T) {
	moved := 0
	rapid.Check(t, func(rt *rapid.T) {
		o := options()
		o.AtOnce, o.PerNode, o.PerHour = rapid.IntRange(1, 4).Draw(rt, "at once"), rapid.IntRange(1, 3).Draw(rt, "per node"), rapid.IntRange(2, 12).Draw(rt, "per hour")
		r := newRig(t, o)
		r.Client = stamping{r.Client, r}
		var nodes []string
		for z := range rapid.IntRange(2, 3).Draw(rt, "zones") {
			for i := range rapid.IntRange(1, 2).Draw(rt, "nodes") {
				nodes = append(nodes, fmt.Sprintf("%c%d", 'a'+z, i))
				r.node(nodes[len(nodes)-1], string(rune('a'+z)), time.Hour, func(n *corev1.Node) {
					n.Status.Allocatable[corev1.ResourceCPU] = n.Status.Capacity[corev1.ResourcePods]
				})
			}
		}
		apps := []string{"p", "q", "r"}[:rapid.IntRange(1, 3).Draw(rt, "apps")]
		for _, app := range apps {
			r.deploy(app, plain, rapid.SliceOfN(rapid.SampledFrom(nodes), 1, 6).Draw(rt, app)...)
		}
		made, idle := make(map[string]int), 0
		for looks := 0; idle < 13; looks++ { // an hour and more
			if looks > 500 {
				rt.Fatalf("there is no end to it: %v", made)
			}
			r.Time.Step(5 * time.Minute)
			placementtest.Must(rt, r.look(t.Context()))
			idle++
			for _, m := range r.underBudget(rt) {
				idle = 0
				if rapid.Bool().Draw(rt, "ends") {
					made[m.OwnerReferences[0].Name]++
					r.carriedOut(rt, &m)
				}
			}
		}
		for _, app := range apps {
			moved += made[app]
			if left := r.misplaced(rt, app); left[0] > 0 {
				rt.Fatalf("after %d Moves of %s %v are misplaced", made[app], app, left)
			}
		}
	})
	if moved == 0 {
		t.Error("nothing was ever moved")
	}
}

// underBudget returns the Moves that have not ended, and fails the property if there are more than there may be.
func (r *rig) underBudget(rt *rapid.T) (active []placementv1alpha1.Move) {
	hour, onNode, of := 0, make(map[string]int), make(map[string]int)
	for _, m := range r.Moves() {
		if m.CreationTimestamp.After(r.Time.Now().Add(-time.Hour)) {
			hour++
		}
		if m.Status.Phase.Ended() {
			continue
		}
		active = append(active, m)
		pod := &corev1.Pod{ObjectMeta: controllertest.Named(m.Spec.Pod.Name)}
		r.Get(pod)
		onNode[pod.Spec.NodeName]++
		of[m.Spec.ReplicaSet.Name]++
	}
	if len(active) > r.AtOnce || hour > r.PerHour {
		rt.Fatalf("%d Moves at once, and %d in an hour", len(active), hour)
	}
	for node, n := range onNode {
		if n > r.PerNode {
			rt.Fatalf("%d Moves at once from %s", n, node)
		}
	}
	for set, n := range of {
		if n > 1 {
			rt.Fatalf("%d Moves at once of %s", n, set)
		}
	}
	return active
}

// pods are those of an app, and its ReplicaSet.
func (r *rig) pods(app string) (*appsv1.ReplicaSet, []*corev1.Pod) {
	set, list := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named(app + "-1")}, &corev1.PodList{}
	r.Get(set)
	r.Must(r.API.List(r.Context(), list, client.MatchingLabels{"app": app}))
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return set, pods
}

// misplaced is how many pods of an app are, by level.
func (r *rig) misplaced(rt *rapid.T, app string) []int64 {
	set, pods := r.pods(app)
	w, ok := workload.Of(set, pods)
	if !ok {
		rt.Fatalf("%s is not spread", app)
	}
	all, err := read(r.Context(), r.Client, r.API, r.Time.Now())
	r.Must(err)
	return workload.MisplacedIn(w.Tree(all.nodes, all.on))
}

// carriedOut ends a Move as the other controller and the scheduler would: another pod is placed by the tree, and this one is gone.
func (r *rig) carriedOut(rt *rapid.T, m *placementv1alpha1.Move) {
	app := m.OwnerReferences[0].Name
	before := r.misplaced(rt, app)
	set, pods := r.pods(app)
	var old *corev1.Pod
	others := slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		if p.Name == m.Spec.Pod.Name {
			old = p
		}
		return p.Name == m.Spec.Pod.Name
	})
	another := old.DeepCopy()
	r.Delete(old)
	w, _ := workload.Of(set, append(others, another)) // for the levels that are on it
	all, err := read(r.Context(), r.Client, r.API, r.Time.Now())
	r.Must(err)
	node, ok := w.Tree(all.nodes, all.on).Next(func(string) bool { return true })
	if !ok {
		rt.Fatal("there is no node for it")
	}
	another.ResourceVersion, another.CreationTimestamp = "", metav1.NewTime(r.Time.Now())
	another.Name, another.Spec.NodeName = fmt.Sprintf("%s-%d", app, r.Time.Now().Unix()), node
	another.UID = types.UID(another.Name)
	r.Create(another)
	r.end(m.Name, placementv1alpha1.MoveDone)
	if after := r.misplaced(rt, app); slices.Compare(after, before) >= 0 {
		rt.Fatalf("%s has %v misplaced after a Move, and %v before", app, after, before)
	}
}

func options() Options {
	return Options{Mode: Enabled, Schedulers: []string{"espalier-scheduler"}, AtOnce: 5, PerNode: 2, PerHour: 10, Quiet: time.Minute, NodeReady: time.Minute, PodAge: time.Minute}
}

func TestOptions(t *testing.T) {
	controllertest.WantInvalid(t, options, map[string]func(*Options){
		`"Maybe" is no mode: use DryRun, Enabled or ByPolicy`:            func(o *Options) { o.Mode = "Maybe" },
		"0 is no bound of Moves at once: use 1 to 1000":                  func(o *Options) { o.AtOnce = 0 },
		"1001 is no bound of Moves at once from one node: use 1 to 1000": func(o *Options) { o.PerNode = 1001 },
		"-1 is no bound of Moves in an hour: use 1 to 10000":             func(o *Options) { o.PerHour = -1 },
		"-1s is no time that a Deployment must be quiet: use 0s to 24h":  func(o *Options) { o.Quiet = -time.Second },
		"25h0m0s is no time that a node must be ready: use 0s to 24h":    func(o *Options) { o.NodeReady = 25 * time.Hour },
		"-1ns is no time that a pod must have lived: use 0s to 24h":      func(o *Options) { o.PodAge = -1 },
	})
}

func TestWindows(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 1, 1, hour, minute, 59, 0, time.UTC) }
	day, night := "09:30-17:00", "22:00-06:00"
	for _, tc := range []struct {
		windows []string
		now     time.Time
		open    bool
	}{
		{nil, at(3, 0), true},
		{[]string{day}, at(9, 29), false},
		{[]string{day}, at(9, 30), true},
		{[]string{day}, at(16, 59), true},
		{[]string{day}, at(17, 0), false},
		{[]string{night}, at(21, 59), false},
		{[]string{night}, at(22, 0), true},
		{[]string{night}, at(0, 0), true},
		{[]string{night}, at(6, 0), false},
		{[]string{day, night}, at(5, 0), true},
		{[]string{day, night}, at(20, 0), false},
		{[]string{day}, at(9, 30).In(time.FixedZone("", 3600)), true},
	} {
		var windows []Window
		for _, text := range tc.windows {
			w, err := ParseWindow(text)
			controllertest.Must(t, err)
			windows = append(windows, w)
		}
		if open(windows, tc.now) != tc.open {
			t.Errorf("%v at %s: want %t", tc.windows, tc.now, tc.open)
		}
	}
	for _, text := range []string{"", "-", "22:00", "22:00-", "22-06", "24:00-06:00", "22:60-23:00", "22:00-22:00", "06:00-6:00", "22:00-06:00-07:00", strings.Repeat("9", 1000)} {
		if w, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), "use HH:MM-HH:MM in UTC") || len(err.Error()) > 300 {
			t.Errorf("%.20q is read as %v, %v", text, w, err)
		}
	}
}

// A Deployment is quiet from when it is first seen as it is, and no longer when it changes.
func TestQuiet(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3},
	}
	q := make(quiet)
	look := func(after time.Duration, want time.Duration) {
		t.Helper()
		if got := q.look(d, now.Add(after)); got != want {
			t.Errorf("after %s it has been quiet for %s, want %s", after, got, want)
		}
	}
	look(0, 0)
	look(time.Minute, time.Minute)
	d.Status.ReadyReplicas = 2
	look(2*time.Minute, 0)
	d.Status.ReadyReplicas = 3
	look(3*time.Minute, 0)
	look(4*time.Minute, time.Minute)
	d.Generation = 2
	look(5*time.Minute, 0) // the controller has not seen it
	d.Status.ObservedGeneration = 2
	look(6*time.Minute, 0)
	look(7*time.Minute, time.Minute)
	d.Spec.Paused = true
	look(8*time.Minute, 0)
	d.Spec.Paused = false
	look(9*time.Minute, 0)
	q.forget(now.Add(10 * time.Minute))
	look(11*time.Minute, 0)
}

// Pods that ask to be left where they are stay. Another one goes in their place, of the same node or of another one of the zone that has too many, and
// where none does it is said once.
func TestSparedPodsStay(t *testing.T) {
	one := []string{"a1", "a1", "a1", "a1"}
	for name, tc := range map[string]struct {
		on, spared []string
		want       string // the pod that goes, "" for none
	}{
		"the first to go":                    {one, []string{"web-3"}, "web-2"},
		"all of the node":                    {one, []string{"web-0", "web-1", "web-2", "web-3"}, ""},
		"the fuller node's, and another has": {[]string{"a1", "a1", "a1", "a2"}, []string{"web-0", "web-1", "web-2"}, "web-3"},
		"all of the zone that has too many":  {[]string{"a1", "a1", "a1", "b"}, []string{"web-0", "web-1", "web-2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options())
			for _, host := range []string{"a1", "a2", "b"} {
				r.node(host, host[:1], time.Hour)
			}
			r.deploy("web", func(_ *appsv1.Deployment, p *corev1.Pod) {
				if slices.Contains(tc.spared, p.Name) {
					p.Annotations["karpenter.sh/do-not-disrupt"] = "true"
				}
			}, tc.on...)
			r.after(0)
			if tc.want != "" {
				r.after(2*time.Minute, tc.want)
				r.wantSaid()
				return
			}
			r.after(2 * time.Minute)
			r.after(again)
			r.wantSaid("Normal MoveWithheld Pod " + tc.spared[len(tc.spared)-1] + " on node a1 is misplaced, and stays: it asks for that by the annotation karpenter.sh/do-not-disrupt: true, ")
		})
	}
}

// A pod that asks for a time since its start goes when that is over, though nothing else changes.
func TestSparedForATime(t *testing.T) {
	r := newUneven(t, options(), func(_ *appsv1.Deployment, p *corev1.Pod) {
		p.Annotations["karpenter.sh/do-not-disrupt"] = "62m"
		p.Status.StartTime = &metav1.Time{Time: p.CreationTimestamp.Time}
	}, 4, "web")
	r.after(time.Minute)
	r.after(time.Minute, "web-3")
}

// A dry run names a pod when it no longer asks to be left where it is.
func TestSparedInADryRun(t *testing.T) {
	o := options()
	o.Mode = DryRun
	r := newUneven(t, o, func(_ *appsv1.Deployment, p *corev1.Pod) {
		p.Annotations["karpenter.sh/do-not-disrupt"] = "62m"
		p.Status.StartTime = &metav1.Time{Time: p.CreationTimestamp.Time}
	}, 4, "web")
	r.after(time.Minute)
	r.wantSaid("MoveWithheld Pod web-3 ")
	r.after(time.Minute)
	r.wantSaid("MovePlanned Pod web-3 ")
}
