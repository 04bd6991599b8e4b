// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
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

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
)

func options() Options {
	return Options{Pods: Blocked, AtOnce: 5, Schedulers: []string{"espalier-scheduler"}, Namespaces: labels.Everything()}
}

// cluster is a pod of a Deployment on a cordoned node, with a disruption budget that allows nothing.
type cluster struct {
	node *corev1.Node
	pod  *corev1.Pod
	// other is another node.
	other *corev1.Node
	// budgets select the pod.
	budgets []*policyv1.PodDisruptionBudget
	// says is what a policy says of the pod, "" for no policy.
	says placementv1alpha1.DrainedPods
	Options
}

func newCluster() *cluster {
	owned := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "web-1", Controller: new(true)}}
	return &cluster{
		Options: options(),
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1.example.com"}}, Spec: corev1.NodeSpec{Unschedulable: true},
		},
		other: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1-0", UID: "web-1-0", Labels: map[string]string{"app": "web"}, OwnerReferences: owned},
			Spec:       corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
		budgets: []*policyv1.PodDisruptionBudget{budget("one", 0)},
	}
}

func budget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// start returns a controller of the cluster, and the API server that it reads.
func (c *cluster) start(t *testing.T) (*Controller, client.WithWatch, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{
		c.node, c.other, c.pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1", UID: "web-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: types.UID("web"), Controller: new(true)}},
		}},
	}
	for _, b := range c.budgets {
		objects = append(objects, b)
	}
	if c.says != "" {
		p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
		p.Spec.Moves = &placementv1alpha1.Moves{Drained: c.says}
		objects = append(objects, p)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&placementv1alpha1.Move{}).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	return &Controller{Client: api, API: api, Clock: clock, Options: c.Options}, api, clock
}

// moves looks once, and returns the Moves that there are then.
func (c *cluster) moves(t *testing.T) []placementv1alpha1.Move {
	t.Helper()
	controller, api, _ := c.start(t)
	if err := controller.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	var moves placementv1alpha1.MoveList
	if err := api.List(t.Context(), &moves); err != nil {
		t.Fatal(err)
	}
	return moves.Items
}

// The replacement of a pod on a node that is about to go must be on another one: a pod that tolerates everything would come back.
func TestDrain(t *testing.T) {
	moves := newCluster().moves(t)
	if len(moves) != 1 || moves[0].Name != "web-1-0" || moves[0].Spec.Reason != placementv1alpha1.MoveDrain {
		t.Fatalf("there are %+v", moves)
	}
	if a := moves[0].Spec.Avoid; a == nil || a.TopologyKey != corev1.LabelHostname || a.Value == nil || *a.Value != "n1.example.com" {
		t.Errorf("it avoids %+v", a)
	}
}

// Which pods are replaced.
func TestWhichPods(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   int
	}{
		"a budget that allows one":          {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 1 }, 0},
		"no budget":                         {func(c *cluster) { c.budgets = nil }, 0},
		"no budget, and all are":            {func(c *cluster) { c.budgets, c.Pods = nil, All }, 1},
		"two budgets, which nothing eases":  {func(c *cluster) { c.budgets = append(c.budgets, budget("two", 5)) }, 0},
		"two budgets, and all are":          {func(c *cluster) { c.budgets, c.Pods = append(c.budgets, budget("two", 5)), All }, 0},
		"a node that nobody removes":        {func(c *cluster) { c.node.Spec.Unschedulable = false }, 0},
		"a pod of another scheduler":        {func(c *cluster) { c.pod.Spec.SchedulerName = "default-scheduler" }, 0},
		"another namespace is selected":     {func(c *cluster) { c.Namespaces = labels.SelectorFromSet(labels.Set{"team": "db"}) }, 0},
		"the namespace is selected":         {func(c *cluster) { c.Namespaces = labels.SelectorFromSet(labels.Set{"team": "web"}) }, 1},
		"a pod that is not of a Deployment": {func(c *cluster) { c.pod.OwnerReferences[0].Kind = "DaemonSet" }, 0},
		"a pod that has not started":        {func(c *cluster) { c.pod.Status.Phase = corev1.PodPending }, 0},
		"none are":                          {func(c *cluster) { c.Pods = None }, 0},
		"a node that was cordoned for its end, and none are": {func(c *cluster) {
			c.Pods, c.budgets = None, nil
			c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
		}, 1},
		"a node that was cordoned for its end, and blocked ones by policy": {func(c *cluster) {
			c.budgets, c.says = nil, "Blocked"
			c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
		}, 1},
		"a node that was cordoned for its end, and none by policy": {func(c *cluster) {
			c.says = "None"
			c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
		}, 0},
		"a node that was cordoned for its end, and is not any more": {func(c *cluster) {
			c.node.Spec.Unschedulable = false
			c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
		}, 0},
		"a node that an autoscaler removes": {func(c *cluster) {
			c.node.Spec = corev1.NodeSpec{Taints: []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}}
		}, 1},
		"all nodes are cordoned": {func(c *cluster) { c.other.Spec.Unschedulable = true }, 1},
		"all nodes may be removed": {func(c *cluster) {
			may := corev1.NodeSpec{Taints: []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}}
			c.node.Spec, c.other.Spec = may, may
		}, 0},
		"the other one is removed for another reason": {func(c *cluster) {
			c.other.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, 1},
		"all, by policy":                         {func(c *cluster) { c.budgets, c.says = nil, "All" }, 1},
		"blocked ones alone, by policy":          {func(c *cluster) { c.budgets, c.Pods, c.says = nil, All, "Blocked" }, 0},
		"none, by policy":                        {func(c *cluster) { c.Pods, c.says = All, "None" }, 0},
		"by policy alone, and there is none":     {func(c *cluster) { c.Pods = move.ByPolicy }, 0},
		"by policy alone, all":                   {func(c *cluster) { c.budgets, c.Pods, c.says = nil, move.ByPolicy, "All" }, 1},
		"by policy alone, blocked ones":          {func(c *cluster) { c.Pods, c.says = move.ByPolicy, "Blocked" }, 1},
		"by policy alone, and it is not blocked": {func(c *cluster) { c.budgets, c.Pods, c.says = nil, move.ByPolicy, "Blocked" }, 0},
		"a choice that another release knows":    {func(c *cluster) { c.says = "Some" }, 0},
		"by policy, in another namespace":        {func(c *cluster) { c.says, c.Namespaces = "All", labels.SelectorFromSet(labels.Set{"team": "db"}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			if moves := c.moves(t); len(moves) != tc.want {
				t.Errorf("there are %d Moves, want %d", len(moves), tc.want)
			}
		})
	}
}
