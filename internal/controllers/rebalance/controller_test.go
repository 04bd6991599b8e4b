// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a controller on an API server that is played.
type rig struct {
	*testing.T
	*Controller
	clock *clocktesting.FakeClock
	said  *events.FakeRecorder
}

func newRig(t *testing.T, o Options) *rig {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&placementv1alpha1.Move{}).Build()
	r := &rig{T: t, clock: clocktesting.NewFakeClock(begin), said: events.NewFakeRecorder(10)}
	if o.Namespaces == nil {
		o.Namespaces = labels.Everything()
	}
	r.Controller = &Controller{
		Client: api, API: api, Events: r.said, Clock: r.clock, Options: o,
		quiet: make(quiet), verdicts: make(map[types.UID]verdict), tried: make(map[types.UID]attempt),
	}
	r.Controller.said = make(map[types.UID]types.UID)
	r.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}})
	return r
}

func (r *rig) make(o client.Object) {
	r.Helper()
	if err := r.Client.Create(r.Context(), o); err != nil {
		r.Fatal(err)
	}
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
	r.make(n)
}

// deploy makes a Deployment with pods on nodes.
func (r *rig) deploy(app string, change func(*appsv1.Deployment, *corev1.Pod), nodes ...string) {
	r.Helper()
	replicas, isController := int32(len(nodes)), true
	revision := map[string]string{"deployment.kubernetes.io/revision": "1"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: app, UID: types.UID(app), Generation: 1, Annotations: revision},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))},
		}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas},
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: app + "-1", UID: types.UID(app + "-1"), Annotations: revision,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: app, UID: d.UID, Controller: &isController}},
	}}
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
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: &isController}},
			},
			Spec: corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		change(d, p)
		pods = append(pods, p)
	}
	r.make(d)
	r.make(set)
	for _, p := range pods {
		r.make(p)
	}
}

func plain(*appsv1.Deployment, *corev1.Pod) {}

// after looks once some time later, and wants these pods to have Moves that have not ended.
func (r *rig) after(d time.Duration, want ...string) {
	r.Helper()
	r.clock.Step(d)
	if err := r.look(r.Context()); err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, m := range r.moves() {
		if !m.Status.Phase.Ended() {
			got = append(got, m.Name)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("%s are moved, want %s", got, want)
	}
}

func (r *rig) moves() []placementv1alpha1.Move {
	r.Helper()
	var moves placementv1alpha1.MoveList
	if err := r.API.List(r.Context(), &moves); err != nil {
		r.Fatal(err)
	}
	return moves.Items
}

// end ends a Move, as the other controller would.
func (r *rig) end(name string, phase placementv1alpha1.MovePhase) {
	r.Helper()
	m := &placementv1alpha1.Move{}
	if err := r.API.Get(r.Context(), types.NamespacedName{Namespace: "ns", Name: name}, m); err != nil {
		r.Fatal(err)
	}
	m.Status.Phase = phase
	if err := r.Client.Status().Update(r.Context(), m); err != nil {
		r.Fatal(err)
	}
}

// The pod that would be removed first goes from the zone that has all, when the Deployment has been quiet.
func TestAMoveIsMade(t *testing.T) {
	r := newRig(t, options())
	r.node("a", "a", time.Hour)
	r.node("b", "b", time.Hour)
	r.deploy("web", plain, "a", "a", "a", "a")
	r.after(0)
	r.after(time.Minute - time.Second)
	r.after(time.Second, "web-3")
	r.after(time.Second, "web-3") // one at a time
	m := r.moves()[0]
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

// A Move after which as many pods are misplaced was the last one for an hour, unless somebody changes the Deployment.
func TestMovesThatComeToNothing(t *testing.T) {
	r := newRig(t, options())
	r.node("a", "a", time.Hour)
	r.node("b", "b", time.Hour)
	r.deploy("web", plain, "a", "a", "a", "a")
	r.after(0)
	r.after(time.Minute, "web-3")
	r.end("web-3", placementv1alpha1.MoveDone)
	r.after(time.Second)
	r.after(30 * time.Minute)
	if len(r.said.Events) != 1 || !strings.Contains(<-r.said.Events, "None is replaced for an hour.") {
		t.Error("it does not say why")
	}
	r.after(31*time.Minute, "web-2")
}

// refusing makes nothing.
type refusing struct{ client.Client }

func (refusing) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New("in trouble")
}

// A Move that could not be made has come to nothing of its own.
func TestAMoveThatCannotBeMade(t *testing.T) {
	r := newRig(t, options())
	r.node("a", "a", time.Hour)
	r.node("b", "b", time.Hour)
	r.deploy("web", plain, "a", "a", "a", "a")
	r.after(0)
	there := r.Client
	r.Client = refusing{there}
	r.clock.Step(time.Minute)
	if err := r.look(t.Context()); err == nil {
		t.Error("there is no error")
	}
	r.Client = there
	r.after(time.Second, "web-3")
	if len(r.said.Events) > 0 {
		t.Errorf("it says %q", <-r.said.Events)
	}
}

// What keeps a pod where it is.
func TestNoMoveIsMade(t *testing.T) {
	for name, tc := range map[string]struct {
		node   func(*corev1.Node)
		change func(*appsv1.Deployment, *corev1.Pod)
		option func(*Options)
	}{
		"the node has just joined": {node: func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(begin.Add(time.Minute))
		}},
		"the node is not ready": {node: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"the node is cordoned":  {node: func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		"the node is about to go": {node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		"the node is tainted": {node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }},
		"the node is full":    {node: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("500m") }},
		"another scheduler's": {change: func(_ *appsv1.Deployment, p *corev1.Pod) { p.Spec.SchedulerName = "other" }},
		"placed by nobody":    {change: func(_ *appsv1.Deployment, p *corev1.Pod) { delete(p.Annotations, "espalier.dev/placed-by") }},
		"young": {change: func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(begin.Add(time.Minute))
		}},
		"with a claim": {change: func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		}},
		"with a resource claim": {change: func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}}
		}},
		"with limits": {change: func(_ *appsv1.Deployment, p *corev1.Pod) { p.Annotations["espalier.dev/domain-limits"] = "zone=1" }},
		"being resized": {change: func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue}}
		}},
		"no surge": {change: func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
		}},
		"being updated": {change: func(d *appsv1.Deployment, _ *corev1.Pod) { d.Status.UpdatedReplicas = 1 }},
		"being updated, of those that need not be quiet": {change: func(d *appsv1.Deployment, _ *corev1.Pod) { d.Status.UpdatedReplicas = 1 }, option: func(o *Options) { o.Quiet = 0 }},
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
			r := newRig(t, o)
			r.node("a", "a", time.Hour)
			if tc.node == nil {
				tc.node = func(*corev1.Node) {}
			}
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
	r := newRig(t, o)
	r.node("a", "a", time.Hour)
	r.node("b", "b", time.Hour)
	r.deploy("web", plain, "a", "a", "a", "a")
	r.after(0)
	r.after(2 * time.Minute)
	r.after(2 * time.Minute)
	if len(r.said.Events) != 1 {
		t.Fatalf("%d events", len(r.said.Events))
	}
	want := `Normal MovePlanned Pod web-3 on node a would be replaced by one on node b or another one that is not in topology.kubernetes.io/zone "a".`
	if got := <-r.said.Events; got != want {
		t.Errorf("it says %s", got)
	}
}

// Moves are bounded: at once, from one node, and in an hour; and those of pods that count together are one at a time.
func TestMovesAreBounded(t *testing.T) {
	web := func(r *rig, change func(*appsv1.Deployment, *corev1.Pod)) {
		r.node("a", "a", time.Hour)
		r.node("b", "b", time.Hour)
		for _, app := range []string{"p", "q", "r"} {
			r.deploy(app, change, "a", "a")
		}
		r.after(0)
	}
	for name, tc := range map[string]struct {
		option func(*Options)
		change func(*appsv1.Deployment, *corev1.Pod)
		want   []string
	}{
		"not":           {func(o *Options) { o.PerNode = 9 }, plain, []string{"p-1", "q-1", "r-1"}},
		"at once":       {func(o *Options) { o.AtOnce = 1 }, plain, []string{"p-1"}},
		"from one node": {func(*Options) {}, plain, []string{"p-1", "q-1"}},
		"in an hour":    {func(o *Options) { o.PerNode, o.PerHour = 9, 1 }, plain, []string{"p-1"}},
		"of one label": {func(o *Options) { o.PerNode = 9 }, func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.Labels["espalier.dev/workload"] = "all"
		}, []string{"p-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			tc.option(&o)
			r := newRig(t, o)
			web(r, tc.change)
			r.after(2*time.Minute, tc.want...)
		})
	}
}
