// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a controller of a cluster.
type rig struct {
	*controllertest.Rig
	*Controller
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{Rig: controllertest.New(t, begin, controllertest.Builder(t))}
	if o.Namespaces == nil {
		o.Namespaces = labels.Everything()
	}
	r.Controller = &Controller{
		Client: r.Server, API: r.Server, Events: r.Said, Clock: r.Time, Options: o,
		quiet: make(quiet), verdicts: make(map[types.UID]verdict), tried: make(map[types.UID]attempt), said: make(map[types.UID]notice),
	}
	r.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}})
	return r
}

// newUneven is a rig with a node in each of two zones, the first of which has all pods of the Deployments. It has looked once.
func newUneven(t *testing.T, o Options, change func(*appsv1.Deployment, *corev1.Pod), pods int, apps ...string) *rig {
	t.Helper()
	r := newRig(t, o)
	r.node("a", "a", time.Hour)
	r.node("b", "b", time.Hour)
	for _, app := range apps {
		r.deploy(app, change, slices.Repeat([]string{"a"}, pods)...)
	}
	r.after(0)
	return r
}

// node makes a node of a zone that has been ready for a time.
func (r *rig) node(name, zone string, ready time.Duration, change ...func(*corev1.Node)) {
	r.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("100")}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(begin.Add(-ready)),
		}}},
	}
	for _, c := range change {
		c(n)
	}
	r.Create(n)
}

// deploy makes a Deployment with pods on nodes.
func (r *rig) deploy(app string, change func(*appsv1.Deployment, *corev1.Pod), nodes ...string) {
	r.Helper()
	replicas := int32(len(nodes))
	d, set := controllertest.Deployment(app, replicas, 1)
	d.Generation, d.Status = 1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas}
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	set.Annotations = d.Annotations
	var pods []*corev1.Pod
	for i, node := range nodes {
		name := fmt.Sprintf("%s-%d", app, i)
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.NewTime(begin.Add(-time.Hour)),
				Annotations: map[string]string{
					"espalier.dev/placed-by":                     "defaults spread=topology.kubernetes.io/zone,spread=kubernetes.io/hostname",
					"controller.kubernetes.io/pod-deletion-cost": fmt.Sprint(-i),
				},
				OwnerReferences: controllertest.OwnedBy("ReplicaSet", set.Name),
			},
			Spec: corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		change(d, p)
		pods = append(pods, p)
	}
	r.Create(d, set)
	for _, p := range pods {
		r.Create(p)
	}
}

func plain(*appsv1.Deployment, *corev1.Pod) {}

// after looks once some time later, and wants these pods to have Moves that have not ended.
func (r *rig) after(d time.Duration, want ...string) {
	r.Helper()
	r.Time.Step(d)
	r.Must(r.look(r.Context()))
	var got []string
	for _, m := range r.Moves() {
		if !m.Status.Phase.Ended() {
			got = append(got, m.Name)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("%s are moved, want %s", got, want)
	}
}

// end ends a Move, as the other controller would.
func (r *rig) end(name string, phase placementv1alpha1.MovePhase) {
	r.Helper()
	m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	controllertest.Change(r.Rig, m, func(m *placementv1alpha1.Move) { m.Status.Phase = phase })
}

// wantSaid wants Events with just these parts since it was asked last.
func (r *rig) wantSaid(want ...string) {
	r.Helper()
	if got := r.Told(); !slices.EqualFunc(got, want, strings.Contains) {
		r.Errorf("it says %q, want %q", got, want)
	}
}

// The pod that would be removed first goes from the zone that has all, when the Deployment has been quiet.
func TestAMoveIsMade(t *testing.T) {
	r := newUneven(t, options(), plain, 4, "web")
	r.after(time.Minute - time.Second)
	r.after(time.Second, "web-3")
	r.after(time.Second, "web-3") // one at a time
	m := r.Moves()[0]
	if a := m.Spec.Avoid; a == nil || a.TopologyKey != corev1.LabelTopologyZone || a.Value == nil || *a.Value != "a" {
		t.Errorf("it avoids %v", a)
	}
	if m.Spec.Reason != placementv1alpha1.MoveRebalance || m.Spec.Pod.UID != "web-3" || m.Spec.ReplicaSet.UID != "web-1" || m.OwnerReferences[0].UID != "web" {
		t.Errorf("it is %v of %v", m.Spec, m.OwnerReferences)
	}
	// One that came to nothing keeps the Deployment from another.
	r.end("web-3", placementv1alpha1.MoveUndone)
	r.after(time.Second)
}

// A node that has just joined and pods that are too young are looked at again though nothing changes but the time.
func TestAMoveIsMadeLater(t *testing.T) {
	for name, since := range map[string]struct{ node, pods time.Duration }{"node": {-time.Minute, time.Hour}, "pods": {time.Hour, -time.Minute}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options())
			r.node("a", "a", time.Hour)
			r.node("b", "b", since.node)
			r.deploy("web", func(_ *appsv1.Deployment, p *corev1.Pod) {
				p.CreationTimestamp = metav1.NewTime(begin.Add(-since.pods))
			}, "a", "a", "a", "a")
			r.after(0)
			r.after(time.Minute)
			r.after(time.Minute, "web-3")
		})
	}
}

// A Move after which as many pods are misplaced was the last one for an hour, unless somebody changes the Deployment.
func TestMovesThatComeToNothing(t *testing.T) {
	r := newUneven(t, options(), plain, 4, "web")
	r.after(time.Minute, "web-3")
	r.end("web-3", placementv1alpha1.MoveDone)
	r.after(time.Second)
	r.after(30 * time.Minute)
	r.wantSaid("None is replaced for an hour.")
	r.after(31*time.Minute, "web-2")
}

// refusing makes nothing.
type refusing struct{ client.Client }

func (refusing) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New("in trouble")
}

// A Move that could not be made has come to nothing of its own.
func TestAMoveThatCannotBeMade(t *testing.T) {
	r := newUneven(t, options(), plain, 4, "web")
	there := r.Client
	r.Client = refusing{there}
	r.Time.Step(time.Minute)
	if err := r.look(t.Context()); err == nil {
		t.Error("there is no error")
	}
	r.Client = there
	r.after(time.Second, "web-3")
	r.wantSaid()
}

// What keeps a pod where it is.
func TestNoMoveIsMade(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	pod := func(change func(*corev1.Pod)) func(*appsv1.Deployment, *corev1.Pod) {
		return func(_ *appsv1.Deployment, p *corev1.Pod) { change(p) }
	}
	deployment := func(change func(*appsv1.Deployment)) func(*appsv1.Deployment, *corev1.Pod) {
		return func(d *appsv1.Deployment, _ *corev1.Pod) { change(d) }
	}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	updated := deployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 })
	for name, tc := range map[string]struct {
		node   func(*corev1.Node)
		change func(*appsv1.Deployment, *corev1.Pod)
		option func(*Options)
	}{
		"the node has just joined": {node: func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(begin.Add(time.Minute))
		}},
		"the node is not ready":   {node: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"the node is cordoned":    {node: func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		"the node is about to go": {node: taint("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule)},
		"the node is tainted":     {node: taint("k", corev1.TaintEffectNoSchedule)},
		"the node is full":        {node: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("500m") }},
		"another scheduler's":     {change: pod(func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })},
		"placed by nobody":        {change: pod(func(p *corev1.Pod) { delete(p.Annotations, "espalier.dev/placed-by") })},
		"young":                   {change: pod(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(begin.Add(time.Minute)) })},
		"with a claim":            {change: pod(func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: claim}} })},
		"with a resource claim":   {change: pod(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} })},
		"with limits":             {change: pod(func(p *corev1.Pod) { p.Annotations["espalier.dev/domain-limits"] = "zone=1" })},
		"being resized": {change: pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue}}
		})},
		"no surge":      {change: deployment(func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0)) })},
		"being updated": {change: updated},
		"being updated, of those that need not be quiet": {change: updated, option: func(o *Options) { o.Quiet = 0 }},
		"another namespace is selected":                  {option: func(o *Options) { o.Namespaces = labels.SelectorFromSet(labels.Set{"team": "db"}) }},
		"another time of the day":                        {option: func(o *Options) { o.Windows = []Window{{0, 60}} }},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			if tc.option != nil {
				tc.option(&o)
			}
			if tc.change == nil {
				tc.change = plain
			}
			if tc.node == nil {
				tc.node = func(*corev1.Node) {}
			}
			r := newRig(t, o)
			r.node("a", "a", time.Hour)
			r.node("b", "b", time.Hour, tc.node)
			r.deploy("web", tc.change, "a", "a", "a", "a")
			r.after(0)
			r.after(time.Minute + time.Second)
		})
	}
}

// Zones that must not differ by more than one, and hosts that are to be even: a host is empty, in a zone that may have another pod while the one
// that would go there is still in its own, and not when it is gone. It stays, as the scheduler would have refused it.
func TestHardConstraintsHoldWhenAPodIsGone(t *testing.T) {
	for hard, want := range map[corev1.UnsatisfiableConstraintAction][]string{corev1.DoNotSchedule: nil, corev1.ScheduleAnyway: {"web-3"}} {
		r := newRig(t, options())
		for _, host := range []string{"a1", "a2", "a3", "b1"} {
			r.node(host, host[:1], time.Hour)
		}
		r.deploy("web", func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.Annotations["espalier.dev/placed-by"] = "defaults spread=kubernetes.io/hostname"
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: hard,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}
		}, "a1", "a2", "b1", "b1")
		r.after(0)
		r.after(2*time.Minute, want...)
	}
}

// A dry run says once what it would do.
func TestDryRun(t *testing.T) {
	o := options()
	o.Mode = DryRun
	r := newUneven(t, o, plain, 4, "web")
	r.after(2 * time.Minute)
	r.after(2 * time.Minute)
	r.wantSaid(`Normal MovePlanned Pod web-3 on node a would be replaced by one on node b or another one that is not in topology.kubernetes.io/zone "a".`)
}

// Moves are bounded: at once, from one node, and in an hour; and those of pods that count together are one at a time.
func TestMovesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		option func(*Options)
		change func(*appsv1.Deployment, *corev1.Pod)
		want   []string
	}{
		"not":           {func(o *Options) { o.PerNode = 9 }, plain, []string{"p-1", "q-1", "r-1"}},
		"at once":       {func(o *Options) { o.AtOnce = 1 }, plain, []string{"p-1"}},
		"from one node": {func(*Options) {}, plain, []string{"p-1", "q-1"}},
		"in an hour":    {func(o *Options) { o.PerNode, o.PerHour = 9, 1 }, plain, []string{"p-1"}},
		"of one label":  {func(o *Options) { o.PerNode = 9 }, func(_ *appsv1.Deployment, p *corev1.Pod) { p.Labels["espalier.dev/workload"] = "all" }, []string{"p-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			tc.option(&o)
			newUneven(t, o, tc.change, 2, "p", "q", "r").after(2*time.Minute, tc.want...)
		})
	}
}

// Whether pods are moved the policy says, or the flag where it says nothing. A dry run moves none, whatever a policy says.
func TestMovesByPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		mode        string
		says        placementv1alpha1.MovesMode
		moved, told bool
	}{
		"the flag alone":           {Enabled, "", true, false},
		"the policy does not want": {Enabled, placementv1alpha1.MovesDisabled, false, false},
		"both":                     {Enabled, placementv1alpha1.MovesEnabled, true, false},
		"nobody has asked":         {move.ByPolicy, "", false, false},
		"the policy has asked":     {move.ByPolicy, placementv1alpha1.MovesEnabled, true, false},
		"a dry run":                {DryRun, placementv1alpha1.MovesEnabled, false, true},
		"no dry run":               {DryRun, placementv1alpha1.MovesDisabled, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Mode = tc.mode
			r := newUneven(t, o, plain, 4, "web")
			p := &placementv1alpha1.PlacementPolicy{ObjectMeta: controllertest.Named("p")}
			p.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"}
			p.Spec.Moves = &placementv1alpha1.Moves{Rebalance: tc.says}
			r.Create(p)
			var want []string
			if tc.moved {
				want = []string{"web-3"}
			}
			r.after(2*time.Minute, want...)
			if told := len(r.Told()) > 0; told != tc.told {
				t.Errorf("an event says what would be done: %t", told)
			}
		})
	}
}

// A pod that two disruption budgets select stays: the API server would never evict it. A dry run does not name it, and it is looked at again when
// one of them is gone.
func TestNoMovesUnderTwoBudgets(t *testing.T) {
	for _, mode := range []string{Enabled, DryRun} {
		o := options()
		o.Mode = mode
		r := newUneven(t, o, plain, 4, "web")
		two := controllertest.Budget("two", "", 0)
		r.Create(controllertest.Budget("one", "", 0), two)
		r.after(2 * time.Minute)
		r.wantSaid("MoveWithheld The pod is not moved: several disruption budgets")
		r.Delete(two)
		if mode == Enabled {
			r.after(again, "web-3")
			continue
		}
		r.after(again)
		r.wantSaid("web-3")
	}
}
