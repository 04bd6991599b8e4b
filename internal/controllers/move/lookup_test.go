// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, surge := range map[string]int32{"web": 1, "one": 0} {
		objects = append(objects,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)), Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(surge))}},
			}},
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-1", UID: types.UID(name + "-1"), OwnerReferences: ownedBy("Deployment", name)}})
	}
	c := &counting{T: t}
	c.api = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&placementv1alpha1.Move{}).Build(), interceptor.Funcs{
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
	c.Begin(c.api, noon)
	return c
}

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
}

// podOf is one of an app, with an owner.
func podOf(name, kind, owner string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, OwnerReferences: ownedBy(kind, owner)}}
}

// budgetFor selects the pods of an app.
func budgetFor(name string, allowed int32, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// Whose pods may be moved. Those that may not rest.
func TestLookupOfOwners(t *testing.T) {
	c := newCounting(t)
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		ok  bool
	}{
		"of a Deployment":           {podOf("a", "ReplicaSet", "web-1"), true},
		"of one without a surge":    {podOf("b", "ReplicaSet", "one-1"), false},
		"of a set that is gone":     {podOf("c", "ReplicaSet", "gone"), false},
		"of a StatefulSet":          {podOf("d", "StatefulSet", "db"), false},
		"of nobody":                 {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "e"}}, false},
		"of another set than it is": {podOf("f", "ReplicaSet", "web-1"), false},
	} {
		if name == "of another set than it is" {
			tc.pod.OwnerReferences[0].UID = "another"
		}
		set, deployment, ok, err := c.Owners(t.Context(), tc.pod)
		if ok != tc.ok || err != nil || c.Rests(tc.pod) == ok {
			t.Errorf("%s: %t, error %v, rests: %t", name, ok, err, c.Rests(tc.pod))
		}
		if ok && (set.Name != "web-1" || deployment.Name != "web") {
			t.Errorf("%s: it is of %s and %s", name, set.Name, deployment.Name)
		}
	}
}

// Which pods can be evicted, now or ever.
func TestLookupOfBudgets(t *testing.T) {
	selectsNothing := budgetFor("broken", 0, "web")
	selectsNothing.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		budgets     []client.Object
		ok, blocked bool
	}{
		"none":                        {nil, true, false},
		"one that allows one":         {[]client.Object{budgetFor("a", 1, "web")}, true, false},
		"one that allows none":        {[]client.Object{budgetFor("a", 0, "web")}, true, true},
		"one for others":              {[]client.Object{budgetFor("a", 0, "db")}, true, false},
		"one that cannot be read":     {[]client.Object{budgetFor("a", 1, "web"), selectsNothing}, true, false},
		"two, of which one allows it": {[]client.Object{budgetFor("a", 0, "web"), budgetFor("b", 5, "web")}, false, true},
	} {
		c, pod := newCounting(t, tc.budgets...), podOf("a", "ReplicaSet", "web-1")
		ok, blocked, err := c.Evictable(t.Context(), pod)
		if ok != tc.ok || blocked != tc.blocked || err != nil || c.Rests(pod) == ok {
			t.Errorf("%s: %t, blocked: %t, error %v, rests: %t", name, ok, blocked, err, c.Rests(pod))
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
		b, pod := budgetFor("a", 0, "web"), podOf("a", "ReplicaSet", "web-1")
		b.Status.CurrentHealthy, b.Status.DesiredHealthy, pod.Status.Phase = 2, 2, corev1.PodRunning
		tc.change(b, pod)
		c := newCounting(t, b)
		if ok, blocked, err := c.Evictable(t.Context(), pod); !ok || blocked != tc.blocked || err != nil {
			t.Errorf("%s: %t, blocked: %t, error %v", name, ok, blocked, err)
		}
	}
}

// However many pods of a Deployment there are, a look reads what they have in common once, also where that fails. The next look reads it anew.
func TestALookReadsOnce(t *testing.T) {
	for _, fails := range []error{nil, errors.New("in trouble")} {
		c := newCounting(t, budgetFor("a", 0, "web"))
		c.fails = fails
		for look := 1; look <= 2; look++ {
			c.Begin(c.api, noon)
			for _, name := range []string{"a", "b", "c"} {
				pod := podOf(name, "ReplicaSet", "web-1")
				_, _, _, err := c.Owners(t.Context(), pod)
				_, _, also := c.Evictable(t.Context(), pod)
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
		l.Begin(nil, noon)
		l.Refuse(podOf("a", "ReplicaSet", "web-1"))
		l.Begin(nil, noon.Add(after))
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
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
		if deployment != "" {
			set.OwnerReferences = ownedBy("Deployment", deployment)
		}
		objects = append(objects, set)
	}
	of("surges", "web", 2)
	of("recreates", "one", 2)
	of("alone", "", 2)
	of("single", "one", 1)
	objects = append(objects, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}})
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
