// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// noon is when the looks of the tests begin.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// counting is a lookup in an API server that counts what is read.
type counting struct {
	*testing.T
	Lookup
	api client.Client
	// gets and lists are the requests so far, which fail with an error.
	gets, lists int
	fails       error
}

func newCounting(t *testing.T, objects ...client.Object) *counting {
	for name, surge := range map[string]int32{"web": 1, "one": 0} {
		d, set := controllertest.Deployment(name, 3, surge)
		objects = append(objects, d, set)
	}
	c := &counting{T: t}
	c.api = interceptor.NewClient(controllertest.Builder(t, objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			c.gets++
			if c.fails != nil {
				return c.fails
			}
			return to.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			c.lists++
			if c.fails != nil {
				return c.fails
			}
			return to.List(ctx, into, options...)
		},
	})
	c.Begin(c.api, nil, noon)
	return c
}

// podOf is one of an app, with an owner.
func podOf(name, kind, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: controllertest.Named(name)}
	p.Labels, p.OwnerReferences = map[string]string{"app": "web"}, controllertest.OwnedBy(kind, owner)
	return p
}

// Which pods can be evicted, now or ever.
func TestLookupOfBudgets(t *testing.T) {
	selectsNothing := controllertest.Budget("broken", "web", 0)
	selectsNothing.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	unsynced, tooMany := controllertest.Budget("bell", "web", 0), controllertest.Budget("five", "web", 0)
	unsynced.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason}}
	tooMany.Status.ExpectedPods, tooMany.Status.DesiredHealthy = 3, 4
	soon := controllertest.Budget("soon", "web", 0) // others become ready
	soon.Status.ExpectedPods, soon.Status.DesiredHealthy, soon.Status.CurrentHealthy = 8, 8, 6
	for name, tc := range map[string]struct {
		budgets []client.Object
		blocked bool
		never   string
	}{
		"none":                        {nil, false, ""},
		"one that allows one":         {[]client.Object{controllertest.Budget("a", "web", 1)}, false, ""},
		"one that allows none":        {[]client.Object{controllertest.Budget("a", "web", 0)}, true, ""},
		"one for others":              {[]client.Object{controllertest.Budget("a", "db", 0)}, false, ""},
		"one that cannot be read":     {[]client.Object{controllertest.Budget("a", "web", 1), selectsNothing}, false, ""},
		"two, of which one allows it": {[]client.Object{controllertest.Budget("a", "web", 0), controllertest.Budget("b", "web", 5)}, true, "several disruption budgets select the pod, and Kubernetes evicts no such pod: a, b"},
		"one that is not synced":      {[]client.Object{unsynced}, true, "the disruption budget bell allows to go"},
		"one that wants too many":     {[]client.Object{tooMany}, true, "the disruption budget five wants more"},
		"one that wants all":          {[]client.Object{soon}, true, ""},
	} {
		c, pod, recorder := newCounting(t, tc.budgets...), podOf("a", "ReplicaSet", "web-1"), events.NewFakeRecorder(1)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		c.Begin(c.api, recorder, noon)
		is, err := c.Evictable(t.Context(), pod)
		if is.Blocked != tc.blocked || !strings.Contains(is.Never, tc.never) || (is.Never == "") != (tc.never == "") || err != nil || c.Rests(pod) != (is.Never != "") {
			t.Errorf("%s: %+v, error %v, rests: %t", name, is, err, c.Rests(pod))
		}
		close(recorder.Events)
		if said := <-recorder.Events; !strings.Contains(said, is.Never) || is.Never == "" && said != "" {
			t.Errorf("%s: an Event says %q", name, said)
		}
	}
}

// Budgets are asked before a pod is handed over, where they may be read, and not when its node does not answer.
func TestBudgetsBeforeAMove(t *testing.T) {
	unsynced, forbidden := controllertest.Budget("bell", "web", 0), apierrors.NewForbidden(policyv1.Resource("poddisruptionbudgets"), "", nil)
	unsynced.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason}}
	for _, tc := range []struct {
		reason placementv1alpha1.MoveReason
		phase  placementv1alpha1.MovePhase
		fails  error
		never  bool
	}{
		{placementv1alpha1.MoveDrain, "", nil, true},
		{placementv1alpha1.MoveDrain, placementv1alpha1.MoveReplacing, nil, false},
		{placementv1alpha1.MoveDisconnect, "", nil, false},
		{placementv1alpha1.MoveDrain, "", forbidden, false},
	} {
		c := newCounting(t, unsynced)
		c.fails = tc.fails
		o := &objects{pod: podOf("a", "ReplicaSet", "web-1"), move: &placementv1alpha1.Move{ObjectMeta: controllertest.Named("m"), Spec: placementv1alpha1.MoveSpec{Reason: tc.reason}}}
		o.pod.Status.Phase, o.move.Status.Phase = corev1.PodRunning, tc.phase
		if err := o.readBudgets(t.Context(), c.api); err != nil || (o.never != "") != tc.never {
			t.Errorf("%+v: %q, %v", tc, o.never, err)
		}
	}
}

// A pod that is not ready may be evicted although its budget allows none, by the rules that the API server has for that.
func TestBudgetsOfPodsThatAreNotReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*policyv1.PodDisruptionBudget, *corev1.Pod)
		blocked bool
	}{
		"fewer are ready than it wants": {func(b *policyv1.PodDisruptionBudget, _ *corev1.Pod) { b.Status.CurrentHealthy = 1 }, true},
		"as many are as it wants":       {func(*policyv1.PodDisruptionBudget, *corev1.Pod) {}, false},
		"it wants none": {func(b *policyv1.PodDisruptionBudget, _ *corev1.Pod) {
			b.Status.CurrentHealthy, b.Status.DesiredHealthy = 0, 0
		}, true},
		"it says so": {func(b *policyv1.PodDisruptionBudget, _ *corev1.Pod) {
			b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 1, new(policyv1.AlwaysAllow)
		}, false},
		"the pod has not started": {func(b *policyv1.PodDisruptionBudget, p *corev1.Pod) {
			b.Status.CurrentHealthy, p.Status.Phase = 1, corev1.PodPending
		}, false},
		"the pod is ready": {func(b *policyv1.PodDisruptionBudget, p *corev1.Pod) {
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, true},
	} {
		b, pod := controllertest.Budget("a", "web", 0), podOf("a", "ReplicaSet", "web-1")
		b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods, pod.Status.Phase = 2, 2, 2, corev1.PodRunning
		tc.change(b, pod)
		c := newCounting(t, b)
		if is, err := c.Evictable(t.Context(), pod); is.Never != "" || is.Blocked != tc.blocked || err != nil {
			t.Errorf("%s: %+v, error %v", name, is, err)
		}
	}
}

// However many pods of a Deployment there are, a look reads what they have in common once, also where that fails. The next look reads it anew.
func TestALookReadsOnce(t *testing.T) {
	for _, fails := range []error{nil, errors.New("in trouble")} {
		c := newCounting(t, controllertest.Budget("a", "web", 0))
		c.fails = fails
		for look := 1; look <= 2; look++ {
			c.Begin(c.api, nil, noon)
			for _, name := range []string{"a", "b", "c"} {
				pod := podOf(name, "ReplicaSet", "web-1")
				_, _, _, err := c.Owners(t.Context(), pod)
				_, also := c.Evictable(t.Context(), pod)
				if !errors.Is(err, fails) || !errors.Is(also, fails) || c.Rests(pod) {
					t.Errorf("pod %s: errors %v and %v, rests: %t", name, err, also, c.Rests(pod))
				}
			}
			each := 2 // a ReplicaSet and a Deployment
			if fails != nil {
				each = 1
			}
			if c.gets != each*look || c.lists != look {
				t.Errorf("after look %d there were %d gets and %d lists", look, c.gets, c.lists)
			}
		}
	}
}

// A pod that was refused rests, for as long as it may, whatever a clock does.
func TestRefusedPodsRest(t *testing.T) {
	for after, rests := range map[time.Duration]bool{0: true, refusedFor - time.Second: true, refusedFor: false, -time.Hour: false} {
		var l Lookup
		l.Begin(nil, nil, noon)
		l.Refuse(podOf("a", "ReplicaSet", "web-1"))
		l.Begin(nil, nil, noon.Add(after))
		if got := l.Rests(podOf("a", "ReplicaSet", "web-1")); got != rests || l.Rests(podOf("b", "ReplicaSet", "web-1")) {
			t.Errorf("after %s it rests: %t", after, got)
		}
	}
}

// A pod that shares a volume of one node with others of its workload may not be moved: another one would never start elsewhere. One that a StatefulSet has
// made for it is its own.
func TestLookupOfSharedVolumes(t *testing.T) {
	claims := map[string]corev1.PersistentVolumeAccessMode{"one": corev1.ReadWriteOnce, "many": corev1.ReadWriteMany, "data-db-0": corev1.ReadWriteOnce}
	var objects []client.Object
	for name, mode := range claims {
		objects = append(objects, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}},
		})
	}
	of := func(name, deployment string, replicas int32) {
		set := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named(name), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
		if deployment != "" {
			set.OwnerReferences = controllertest.OwnedBy("Deployment", deployment)
		}
		objects = append(objects, set)
	}
	of("surges", "web", 2)
	of("recreates", "one", 2)
	of("alone", "", 2)
	of("single", "one", 1)
	objects = append(objects, &appsv1.StatefulSet{ObjectMeta: controllertest.Named("db"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}})
	for _, tc := range []struct {
		kind, owner, claim string
		ok                 bool
	}{
		{"ReplicaSet", "surges", "one", false},
		{"ReplicaSet", "surges", "many", true},
		{"ReplicaSet", "recreates", "one", false},
		{"ReplicaSet", "recreates", "many", true},
		{"ReplicaSet", "alone", "one", false},
		{"ReplicaSet", "single", "one", true},
		{"StatefulSet", "db", "one", false},
		{"StatefulSet", "db", "many", true},
		{"StatefulSet", "db", "data-db-0", true},
	} {
		c, pod := newCounting(t, objects...), podOf("db-0", tc.kind, tc.owner)
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: tc.claim},
		}}}
		if _, ok, err := c.Owner(t.Context(), pod); ok != tc.ok || err != nil || c.Rests(pod) == ok {
			t.Errorf("of %s %s, with claim %s: %t, error %v, rests: %t", tc.kind, tc.owner, tc.claim, ok, err, c.Rests(pod))
		}
	}
}

// Whose pods may be moved, which of them are evicted first, and of which volumes. Those that may not rest.
func TestLookupOfOwners(t *testing.T) {
	claim := func(name string, modes ...corev1.PersistentVolumeAccessMode) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes}}
	}
	with := func(p *corev1.Pod, claim string) *corev1.Pod {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	alone, foreign := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named("alone")}, &appsv1.ReplicaSet{ObjectMeta: controllertest.Named("rolled")}
	foreign.OwnerReferences = controllertest.OwnedBy("Rollout", "r")
	set := &appsv1.StatefulSet{ObjectMeta: controllertest.Named("db")}
	objects := []client.Object{alone, foreign, set, claim("one", corev1.ReadWriteOnce), claim("pod", corev1.ReadWriteOncePod), claim("many", corev1.ReadWriteMany), claim("read", corev1.ReadOnlyMany)}
	ephemeral := podOf("e", "ReplicaSet", "web-1")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	kruise := podOf("k", "StatefulSet", "db")
	kruise.OwnerReferences[0].APIVersion = "apps.kruise.io/v1beta1"
	another := podOf("a", "ReplicaSet", "web-1")
	another.OwnerReferences[0].UID = "another"
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		ok, first bool
	}{
		"of a Deployment":                    {podOf("a", "ReplicaSet", "web-1"), true, false},
		"of one without a surge":             {podOf("a", "ReplicaSet", "one-1"), true, true},
		"of a set that is gone":              {podOf("a", "ReplicaSet", "gone"), false, false},
		"of another set than it is":          {another, false, false},
		"of nobody":                          {&corev1.Pod{ObjectMeta: controllertest.Named("a")}, false, false},
		"of a ReplicaSet alone":              {podOf("a", "ReplicaSet", "alone"), true, true},
		"of a ReplicaSet of somebody's":      {podOf("a", "ReplicaSet", "rolled"), false, false},
		"of a StatefulSet":                   {podOf("a", "StatefulSet", "db"), true, true},
		"of another kind that is called so":  {kruise, false, false},
		"of a DaemonSet":                     {podOf("a", "DaemonSet", "ds"), false, false},
		"of a Job":                           {podOf("a", "Job", "job"), false, false},
		"with a volume of one node":          {with(podOf("a", "ReplicaSet", "web-1"), "one"), true, true},
		"with a volume of one pod":           {with(podOf("a", "ReplicaSet", "web-1"), "pod"), true, true},
		"with a volume of many nodes":        {with(podOf("a", "ReplicaSet", "web-1"), "many"), true, false},
		"with a volume that many nodes read": {with(podOf("a", "ReplicaSet", "web-1"), "read"), true, false},
		"with a claim that is gone":          {with(podOf("a", "ReplicaSet", "web-1"), "gone"), false, false},
		"with a volume of its own":           {ephemeral, true, false},
	} {
		c := newCounting(t, objects...)
		o, ok, err := c.Owner(t.Context(), tc.pod)
		if ok != tc.ok || ok && o.EvictFirst != tc.first || err != nil || c.Rests(tc.pod) == ok {
			t.Errorf("%s: %t, first: %t, error %v, rests: %t", name, ok, o.EvictFirst, err, c.Rests(tc.pod))
		}
		set, deployment, surges, _ := c.Owners(t.Context(), tc.pod)
		if surges != (tc.ok && !tc.first) || c.Rests(tc.pod) == surges || surges && (set.Name != "web-1" || deployment.Name != "web") {
			t.Errorf("%s: another one comes first: %t, of %v and %v", name, surges, set, deployment)
		}
		before := c.gets
		if _, _, _ = c.Owner(t.Context(), tc.pod); c.gets != before && ok {
			t.Errorf("%s: it reads again what it has read", name)
		}
	}
}

// A workload that says that it has too few ready is asked for no pods, as it may say so at every look for hours. A pod that is not ready itself takes
// nothing away, so its workload is asked.
func TestLookupOfWorkloadsWithTooFewReady(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	for name, tc := range map[string]struct {
		ready   int32
		is      []corev1.PodCondition
		refuses bool
		lists   int
	}{
		"one is not ready":         {1, ready, true, 0},
		"all are, by its status":   {2, ready, true, 1}, // the other one is gone
		"it is the one that isn't": {1, nil, false, 1},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: controllertest.Named("db")}
		set.Spec.Replicas, set.Spec.Selector, set.Status.ReadyReplicas = new(int32(2)), selector, tc.ready
		alone := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named("db")}
		alone.Spec.Replicas, alone.Spec.Selector, alone.Status.ReadyReplicas = new(int32(2)), selector, tc.ready
		for kind, of := range map[string]client.Object{"StatefulSet": set, "ReplicaSet": alone} {
			pod := podOf("db-0", kind, "db")
			pod.UID, pod.Labels, pod.Spec.NodeName, pod.Status.Conditions = "db-0", selector.MatchLabels, "n", tc.is
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			c := newCounting(t, of, pod, node)
			owner, ok, err := c.Owner(t.Context(), pod)
			if !ok || err != nil {
				t.Fatalf("%s of a %s: %t, error %v", name, kind, ok, err)
			}
			refuses, err := c.RefusesFirst(t.Context(), owner.Move(pod, placementv1alpha1.MoveDrain, History{}), pod, &owner)
			if refuses != tc.refuses || c.lists != tc.lists || c.Rests(pod) || err != nil {
				t.Errorf("%s of a %s: it refuses: %t, error %v, after %d lists, rests: %t", name, kind, refuses, err, c.lists, c.Rests(pod))
			}
		}
	}
}
