// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

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
	c := &cluster{
		Options: Options{Pods: Blocked, AtOnce: 5, Schedulers: []string{"espalier-scheduler"}, Namespaces: labels.Everything()},
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1.example.com"}}, Spec: corev1.NodeSpec{Unschedulable: true},
		},
		other: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		pod: &corev1.Pod{
			ObjectMeta: controllertest.Named("web-1-0"),
			Spec:       corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
		budgets: []*policyv1.PodDisruptionBudget{controllertest.Budget("one", "web", 0)},
	}
	c.pod.Labels, c.pod.OwnerReferences = map[string]string{"app": "web"}, controllertest.OwnedBy("ReplicaSet", "web-1")
	return c
}

// ended has the node be cordoned for its end.
func (c *cluster) ended() {
	c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
}

// another is a pod like that of the cluster, under another name.
func (c *cluster) another(name string) *corev1.Pod {
	p := c.pod.DeepCopy()
	p.ObjectMeta = controllertest.Named(name)
	p.Labels, p.OwnerReferences = c.pod.Labels, c.pod.OwnerReferences
	return p
}

// spare has the pod ask to be left where it is.
func spare(c *cluster) { c.pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} }

// rig is a controller of a cluster.
type rig struct {
	*controllertest.Rig
	*Controller
}

func (c *cluster) start(t *testing.T) *rig {
	t.Helper()
	deployment, set := controllertest.Deployment("web", 1, 1)
	objects := []client.Object{c.node, c.other, c.pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}}, deployment, set}
	for _, b := range c.budgets {
		objects = append(objects, b)
	}
	if c.says != "" {
		p := &placementv1alpha1.PlacementPolicy{ObjectMeta: controllertest.Named("p")}
		p.Spec.Moves = &placementv1alpha1.Moves{Drained: c.says}
		objects = append(objects, p)
	}
	r := &rig{Rig: controllertest.New(t, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), controllertest.Builder(t, objects...))}
	r.Controller = &Controller{Client: r.Server, API: r.Server, Events: r.Said, Clock: r.Time, Options: c.Options}
	return r
}

// looks looks once, and returns the Moves that there are then.
func (r *rig) looks() []placementv1alpha1.Move {
	r.Helper()
	r.Must(r.look(r.Context()))
	return r.Moves()
}

// The replacement of a pod on a node that is about to go must be on another one: a pod that tolerates everything would come back.
func TestDrain(t *testing.T) {
	moves := newCluster().start(t).looks()
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
		"a budget that allows one":                           {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 1 }, 0},
		"no budget":                                          {func(c *cluster) { c.budgets = nil }, 0},
		"no budget, and all are":                             {func(c *cluster) { c.budgets, c.Pods = nil, All }, 1},
		"two budgets, which nothing eases":                   {func(c *cluster) { c.budgets = append(c.budgets, controllertest.Budget("two", "web", 5)) }, 0},
		"two budgets, and all are":                           {func(c *cluster) { c.budgets, c.Pods = append(c.budgets, controllertest.Budget("two", "web", 5)), All }, 0},
		"a node that nobody removes":                         {func(c *cluster) { c.node.Spec.Unschedulable = false }, 0},
		"a pod of another scheduler":                         {func(c *cluster) { c.pod.Spec.SchedulerName = "default-scheduler" }, 0},
		"another namespace is selected":                      {func(c *cluster) { c.Namespaces = labels.SelectorFromSet(labels.Set{"team": "db"}) }, 0},
		"the namespace is selected":                          {func(c *cluster) { c.Namespaces = labels.SelectorFromSet(labels.Set{"team": "web"}) }, 1},
		"a pod that is not of a Deployment":                  {func(c *cluster) { c.pod.OwnerReferences[0].Kind = "DaemonSet" }, 0},
		"a pod that has not started":                         {func(c *cluster) { c.pod.Status.Phase = corev1.PodPending }, 0},
		"none are":                                           {func(c *cluster) { c.Pods = None }, 0},
		"a node that was cordoned for its end, and none are": {func(c *cluster) { c.ended(); c.Pods, c.budgets = None, nil }, 1},
		"a node that was cordoned for its end, and blocked ones by policy": {func(c *cluster) { c.ended(); c.budgets, c.says = nil, "Blocked" }, 1},
		"a node that was cordoned for its end, and none by policy":         {func(c *cluster) { c.ended(); c.says = "None" }, 0},
		"a pod that asks to be left on its node, which goes":               {spare, 1},
		"a node that was cordoned for its end, and is not any more":        {func(c *cluster) { c.ended(); c.node.Spec.Unschedulable = false }, 0},
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
			if moves := c.start(t).looks(); len(moves) != tc.want {
				t.Errorf("there are %d Moves, want %d", len(moves), tc.want)
			}
		})
	}
}

// Pods that are not replaced cost one request for their namespace and two for their Deployment, and none for half a minute, however many there are.
func TestRefusedPodsCostLittle(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   int
	}{
		"a budget that allows one": {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 1 }, 1},
		"two budgets":              {func(c *cluster) { c.budgets, c.Pods = append(c.budgets, controllertest.Budget("two", "web", 0)), All }, 1},
		"an owner that is gone":    {func(c *cluster) { c.pod.OwnerReferences[0].UID = "another" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			tc.change(cluster)
			r := cluster.start(t)
			for i := range 30 {
				r.Create(cluster.another(fmt.Sprintf("web-1-%d", i+1)))
			}
			requests := 0
			r.API = interceptor.NewClient(r.Server, interceptor.Funcs{
				Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					requests++
					return to.Get(ctx, key, into, options...)
				},
				List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					if _, is := into.(*policyv1.PodDisruptionBudgetList); is {
						requests++
					}
					return to.List(ctx, into, options...)
				},
			})
			begin := r.Time.Now()
			for _, look := range []struct {
				after time.Duration
				want  int
			}{{0, tc.want}, {2 * time.Second, tc.want}, {28 * time.Second, tc.want}, {30 * time.Second, 2 * tc.want}} {
				r.Time.SetTime(begin.Add(look.after))
				r.looks()
				if requests != look.want {
					t.Errorf("after %s there were %d requests, want %d", look.after, requests, look.want)
				}
			}
		})
	}
}

// Once another controller has made a Move, a look is over: it could make none.
func TestALookEndsWhenAnotherMakesAMove(t *testing.T) {
	cluster := newCluster()
	r := cluster.start(t)
	other := cluster.another("another")
	other.Namespace = "other"
	r.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, other)
	var namespaces []string
	r.API = interceptor.NewClient(r.Server, interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, is := into.(*policyv1.PodDisruptionBudgetList); is {
				of := (&client.ListOptions{}).ApplyOptions(options)
				namespaces = append(namespaces, of.Namespace)
				m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "of-another-controller"}}
				if made, err := move.NewCount().Make(ctx, to, m); !made || err != nil {
					t.Errorf("made: %t, error %v", made, err)
				}
			}
			return to.List(ctx, into, options...)
		},
	})
	r.looks()
	if len(namespaces) != 1 {
		t.Errorf("it asks about %v", namespaces)
	}
}

// A pod whose budget never lets it go has no Move, and an Event says why.
func TestABudgetThatCannotBeWorkedOut(t *testing.T) {
	c := newCluster()
	c.budgets[0].Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason}}
	r := c.start(t)
	if moves, told := r.looks(), r.Told(); len(moves) > 0 || len(told) != 1 || !strings.Contains(told[0], "MoveWithheld The pod is not moved: Kubernetes cannot tell") {
		t.Errorf("there are %d Moves, and it is told %q", len(moves), told)
	}
}

// stateful makes the pod one of a StatefulSet, which it returns.
func (c *cluster) stateful() *appsv1.StatefulSet {
	c.pod.Name, c.pod.OwnerReferences = "db-0", controllertest.OwnedBy("StatefulSet", "db")
	return &appsv1.StatefulSet{ObjectMeta: controllertest.Named("db")}
}

// Where all pods of a node are to be replaced, those that no other one can be ready beside are evicted first. No budget may be against it: who
// waits for one would hold a place among those that may be moved at once.
func TestWhichPodsAreEvictedFirst(t *testing.T) {
	ended := func(c *cluster) { c.ended(); c.Pods = None }
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   int
		rests  bool
	}{
		"all are":                         {func(c *cluster) { c.Pods = All }, 1, false},
		"blocked ones are":                {func(*cluster) {}, 0, true},
		"blocked ones are, and it is one": {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 0 }, 0, true},
		"all are, and it asks to stay":    {func(c *cluster) { c.Pods = All; spare(c) }, 0, true},
		"it has, and it asks to stay":     {func(c *cluster) { ended(c); spare(c) }, 1, false},
		"all are, by policy":              {func(c *cluster) { c.says = placementv1alpha1.DrainedAll }, 1, false},
		"the node has reached its end":    {ended, 1, false},
		"it has, and the policy wants no": {func(c *cluster) { ended(c); c.says = placementv1alpha1.DrainedNone }, 0, false},
		"the node does not answer": {func(c *cluster) {
			c.Pods, c.node.Spec.Taints = All, []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
		}, 0, true},
		"the pod tolerates the cordon": {func(c *cluster) {
			c.Pods, c.pod.Spec.Tolerations = All, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, 0, true},
		"the node may be removed, and takes pods": {func(c *cluster) {
			c.Pods, c.node.Spec = All, corev1.NodeSpec{Taints: []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}}
		}, 0, true},
		"a budget that allows none": {func(c *cluster) { c.Pods, c.budgets[0].Status.DisruptionsAllowed = All, 0 }, 0, false},
	} {
		c := newCluster()
		c.budgets[0].Status.DisruptionsAllowed = 1
		tc.change(c)
		set, r := c.stateful(), c.start(t)
		r.Create(set)
		moves, rests := r.looks(), r.lookup.Rests(c.pod)
		if len(moves) != tc.want || rests != tc.rests {
			t.Errorf("%s: there are %d Moves, want %d; it rests: %t", name, len(moves), tc.want, rests)
			continue
		}
		for i := range moves {
			if m := &moves[i]; !m.Spec.EvictsFirst() || m.Spec.StatefulSet.UID != "db" || m.Spec.ReplicaSet.UID != "" || m.Name != "db-0-web" || m.Spec.Avoid == nil {
				t.Errorf("%s: it is %s, %+v", name, m.Name, m.Spec)
			}
		}
	}
}

// The pods of a StatefulSet go one after the other, each as soon as the others are ready, however long they take to start. No Move waits for that: it would
// fail after half a minute.
func TestDrainOfPodsThatStartSlowly(t *testing.T) {
	c := newCluster()
	c.Pods, c.budgets = All, nil
	ready := func(is corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	}
	c.pod.Status.Conditions = ready(corev1.ConditionTrue)
	set := c.stateful()
	set.Spec = appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: c.pod.Labels}}
	set.Status.ReadyReplicas, set.Status.AvailableReplicas = 2, 2 // its controller has not seen yet that one is gone
	r := c.start(t)
	after := func(d time.Duration, want int) {
		t.Helper()
		r.Time.Step(d)
		if moves := r.looks(); len(moves) != want {
			t.Errorf("there are %d Moves, want %d", len(moves), want)
		}
	}
	r.Create(set)
	after(every, 0) // the other one has gone
	other := c.another("db-1")
	other.Spec.NodeName, other.Status.Conditions = "n2", ready(corev1.ConditionFalse)
	r.Create(other)
	after(every, 0)
	after(5*time.Minute, 0)
	controllertest.Change(r.Rig, other, func(p *corev1.Pod) { p.Status.Conditions = ready(corev1.ConditionTrue) })
	after(every, 1)
}
