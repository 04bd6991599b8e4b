// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	goleak.VerifyTestMain(m)
}

// rig is a reconciler at noon.
type rig struct {
	*controllertest.Rig
	*Reconciler
}

func newRig(t *testing.T, b *fake.ClientBuilder) *rig {
	r := &rig{Rig: controllertest.New(t, noon.Time, b)}
	r.Reconciler = &Reconciler{Client: r.Server, Schedulers: []string{"espalier-scheduler"}, Clock: r.Time}
	return r
}

// reconcile looks at the policies of a namespace, or of the cluster if it is "".
func (r *rig) reconcile(namespace string) {
	r.Helper()
	_, err := r.Reconcile(r.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace}})
	r.Must(err)
}

// policy is one of a kind, as the reconciler reads it.
func (r *rig) policy(kind, namespace, name string) *unstructured.Unstructured {
	r.Helper()
	u := object(kind).(*unstructured.Unstructured)
	u.SetNamespace(namespace)
	u.SetName(name)
	r.Get(u)
	return u
}

func named(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := pods(1, "web")[0]
	pod.Name, pod.Spec.SchedulerName = name, "espalier-scheduler"
	change(&pod)
	return &pod
}

func same(*corev1.Pod) {}

// daemon makes a pod one of a DaemonSet, beside an owner that does not control it.
func daemon(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f"},
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", Controller: &yes},
	}
}

func TestReconcile(t *testing.T) {
	a, elsewhere := made("a", "web", 0), made("a", "web", 0)
	elsewhere.Namespace = "elsewhere"
	now := metav1.Now()
	r := newRig(t, controllertest.Builder(t,
		&a, &elsewhere,
		named("pending", same), named("running", func(p *corev1.Pod) { p.Spec.NodeName = "n" }),
		named("other-scheduler", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
		named("succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		named("failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		named("leaving", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"x/y"} }),
		named("daemon", daemon),
		named("far", func(p *corev1.Pod) { p.Namespace = "third" }),
	))
	read := func(namespace string) *placementv1alpha1.PlacementPolicy {
		p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
		r.Get(p)
		return p
	}
	r.reconcile("ns")
	first := read("ns")
	if got := brief(first.Status); got != "2 2 Valid! NoConflict InForce!" || first.Status.ObservedGeneration != 3 {
		t.Errorf("got %q of generation %d", got, first.Status.ObservedGeneration)
	}
	if got := read("elsewhere").Status; len(got.Conditions) > 0 {
		t.Errorf("the other namespace was written to: %v", got)
	}
	r.Time.Step(time.Hour)
	r.reconcile("ns")
	if again := read("ns"); again.ResourceVersion != first.ResourceVersion {
		t.Error("a status that says the same was written again")
	}
}

// trimmed is a pod as the cache keeps it.
func trimmed(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	out, err := Trim(p)
	controllertest.Must(t, err)
	kept, ok := out.(*corev1.Pod)
	if !ok {
		t.Fatalf("it becomes a %T", out)
	}
	return kept
}

func TestTrimKeepsWhatAStatusIsComputedFrom(t *testing.T) {
	ours := []string{"espalier-scheduler"}
	full := named("p", func(p *corev1.Pod) {
		p.Annotations = map[string]string{clusterview.PlacementAnnotation: "spread=zone", "big": "text"}
		p.Spec.Containers = []corev1.Container{{Name: "c"}}
	})
	kept := trimmed(t, full)
	policies := []placementv1alpha1.PlacementPolicy{made("a", "web", 0)}
	before, after := computed(policies, []corev1.Pod{*full}, noon), computed(policies, []corev1.Pod{*kept}, noon)
	if brief(before[0]) != brief(after[0]) || !counts(kept, ours) {
		t.Errorf("got %q, want %q", brief(after[0]), brief(before[0]))
	}
	if len(kept.Spec.Containers) > 0 || len(kept.Annotations) != 1 {
		t.Errorf("it keeps %v", kept)
	}
	if kept = trimmed(t, named("d", daemon)); counts(kept, ours) || len(kept.OwnerReferences) != 1 {
		t.Errorf("a DaemonSet's pod becomes %v", kept)
	}
	left := map[string]string{clusterview.CostBeforeMoveAnnotation: "-3", clusterview.RemovedForMoveAnnotation: "m", clusterview.MadeEvictableAnnotation: "true"}
	if kept = trimmed(t, named("m", func(p *corev1.Pod) { p.Annotations = left })); !maps.Equal(kept.Annotations, left) {
		t.Errorf("of what a Move may leave it keeps %v", kept)
	}
	kept = trimmed(t, named("v", func(p *corev1.Pod) {
		p.CreationTimestamp = noon
		p.Spec.Volumes = []corev1.Volume{{Name: "e"}, {Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}))
	if len(kept.Spec.Volumes) != 1 || kept.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data" || !kept.CreationTimestamp.Equal(&noon) {
		t.Errorf("of its claims and its age it keeps %v", kept)
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: noon}
	kept = trimmed(t, named("r", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, ready}
		p.Status.Conditions[1].Message = "long"
	}))
	if len(kept.Spec.Tolerations) != 1 || len(kept.Status.Conditions) != 1 || kept.Status.Conditions[0] != ready {
		t.Errorf("of what it tolerates, and whether it is ready, it keeps %v", kept)
	}
}

// A cache trims what it is listed, and may trim it again when it keeps it.
func TestTrimAgain(t *testing.T) {
	pod := placedBy(1, "policy/a@1 spread=zone")[0]
	pod.Spec.NodeName, pod.Annotations[clusterview.DomainLimitsAnnotation] = "n1", "zone=1"
	once := trimmed(t, &pod)
	if d := cmp.Diff(once, trimmed(t, once.DeepCopy())); d != "" {
		t.Errorf("once -, twice +:\n%s", d)
	}
	if by := once.Annotations[clusterview.PlacedByAnnotation]; by != "policy/a@1" {
		t.Errorf("it keeps %q", by)
	}
	pod.Spec.NodeName = ""
	if forged := trimmed(t, &pod); forged.Annotations[clusterview.PlacedByAnnotation] != "" {
		t.Errorf("what a pod says that is not bound is kept: %v", forged)
	}
}

func TestPodMatters(t *testing.T) {
	r := &Reconciler{Schedulers: []string{"espalier-scheduler"}}
	matters := r.podMatters()
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	for name, tc := range map[string]struct {
		before, after func(*corev1.Pod)
		want          bool
	}{
		"nothing":                {same, same, false},
		"bound":                  {same, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"ended":                  {same, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"label":                  {same, func(p *corev1.Pod) { p.Labels["x"] = "y" }, true},
		"annotation":             {same, func(p *corev1.Pod) { p.Annotations["x"] = "y" }, true},
		"adopted by a DaemonSet": {same, daemon, true},
		"label, but not ours":    {foreign, func(p *corev1.Pod) { foreign(p); p.Labels["x"] = "y" }, false},
	} {
		if got := matters.Update(event.UpdateEvent{ObjectOld: named("p", tc.before), ObjectNew: named("p", tc.after)}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if !matters.Create(event.CreateEvent{Object: named("p", same)}) || matters.Delete(event.DeleteEvent{Object: named("p", foreign)}) {
		t.Error("the pods that come and go are not those of the schedulers")
	}
}

// all is a policy of the cluster over zones for the web of all namespaces that have env=prod.
func all(name string, mode placementv1alpha1.Mode) placementv1alpha1.ClusterPlacementPolicy {
	p := placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
	p.Spec.PlacementPolicySpec = made(name, "web", 0).Spec
	p.Spec.Mode = mode
	return p
}

func in(namespace string, list []corev1.Pod) []corev1.Pod {
	for i := range list {
		list[i].Namespace = namespace
	}
	return list
}

// A policy of the cluster counts pods of all namespaces that it selects, and is in no conflict with policies of these.
func TestClusterPolicies(t *testing.T) {
	namespaces := map[string]labels.Set{"ns": {"env": "prod"}, "far": {"env": "prod"}, "dev": {"env": "dev"}}
	all3 := slices.Concat(pods(2, "web"), in("far", pods(4, "web")), in("dev", pods(8, "web")))
	own := made("own", "web", 0)
	for name, tc := range map[string]struct {
		mode       placementv1alpha1.Mode
		pods       []corev1.Pod
		own, whole string
	}{
		"by default, the one of the namespace comes first": {placementv1alpha1.ModeDefault, all3, "2 2 Valid! NoConflict InForce!", "6 4 Valid! NoConflict InForce!"},
		"overriding, the one of the cluster does":          {placementv1alpha1.ModeOverride, all3, "2 0 Valid! NoConflict Overruled", "6 6 Valid! NoConflict InForce!"},
		"what the scheduler has written": {
			placementv1alpha1.ModeDefault,
			slices.Concat(placedBy(1, "policy/own@3 spread=zone"), placedBy(2, "clusterpolicy/own@3"), placedBy(4, "clusterpolicy/all@3 spread=zone")),
			"7 1 Valid! NoConflict InForce!", "7 4 Valid! NoConflict Overruled",
		},
	} {
		whole := all("all", tc.mode)
		states := compute([]*clusterview.Policy{clusterview.ReadPolicy(&own), clusterview.ReadClusterPolicy(&whole)}, namespaces, tc.pods)
		for i, want := range []string{tc.own, tc.whole} {
			status := states[i].status(placementv1alpha1.PlacementPolicyStatus{}, noon)
			if got := brief(status); got != want {
				t.Errorf("%s: %s: got %q, want %q", name, states[i].policy, got, want)
			}
			ready := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionReady)
			if other := states[1-i].policy; ready.Status == metav1.ConditionFalse && !strings.Contains(ready.Message, other.String()) {
				t.Errorf("%s: %s does not say that %s comes before it: %s", name, states[i].policy, other, ready.Message)
			}
		}
	}
}

// A policy of the cluster whose namespaces cannot be read holds up no pods, and says so.
func TestAClusterPolicyForNoNamespace(t *testing.T) {
	whole := all("all", placementv1alpha1.ModeDefault)
	whole.Spec.NamespaceSelector.MatchLabels = map[string]string{"not a key": "prod"}
	states := compute([]*clusterview.Policy{clusterview.ReadClusterPolicy(&whole)}, map[string]labels.Set{"ns": {"env": "prod"}}, pods(2, "web"))
	status := states[0].status(placementv1alpha1.PlacementPolicyStatus{}, noon)
	m := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionAccepted).Message
	if !strings.Contains(m, "spec.namespaceSelector") || !strings.HasSuffix(m, "; it has a say in no namespace") {
		t.Error(m)
	}
}

// A request without a namespace writes the statuses of the policies of the cluster. One that cannot be decoded stops no other.
func TestReconcileTheCluster(t *testing.T) {
	whole, own := all("all", placementv1alpha1.ModeOverride), made("own", "web", 0)
	r := newRig(t, controllertest.Builder(t,
		&whole, &own, named("a", same), named("b", func(p *corev1.Pod) { p.Namespace = "far" }), named("c", func(p *corev1.Pod) { p.Namespace = "dev" }),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"env": "prod"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "far", Labels: map[string]string{"env": "prod"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}},
	))
	for range 2 {
		r.reconcile("")
		r.reconcile("ns")
	}
	if got := brief(statusOf(r.policy(ofCluster, "", "all"))); got != "2 2 Valid! NoConflict InForce!" {
		t.Errorf("the policy of the cluster: %q", got)
	}
	if got := brief(statusOf(r.policy(ofNamespace, "ns", "own"))); got != "1 0 Valid! NoConflict Overruled" {
		t.Errorf("the policy of the namespace: %q", got)
	}
}

// TestAStatusFromAStaleCacheIsMended has the last pod go before the cache has the status that counted it. To a look at that cache there is
// nothing to write, and nothing but the event of that status asks for another look.
func TestAStatusFromAStaleCacheIsMended(t *testing.T) {
	policy, pod := made("a", "web", 0), named("p", same)
	var cached *unstructured.Unstructured // what a list says, while it is not nil
	r := newRig(t, controllertest.Builder(t, &policy).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if policies, ok := list.(*unstructured.UnstructuredList); ok && cached != nil && policies.GetKind() == ofNamespace+"List" {
				policies.Items = []unstructured.Unstructured{*cached.DeepCopy()}
				return nil
			}
			return c.List(ctx, list, opts...)
		}}))
	read := func() *unstructured.Unstructured { return r.policy(ofNamespace, "ns", "a") }
	governed := func(u *unstructured.Unstructured) int32 { return *statusOf(u).GovernedPods }

	r.reconcile("ns")
	before := read()
	r.Create(pod)
	r.reconcile("ns")
	counted := read()
	if governed(counted) != 1 {
		t.Fatalf("%d pods are governed, want 1", governed(counted))
	}
	r.Delete(pod)
	cached = before
	r.reconcile("ns")
	if got := governed(read()); got != 1 {
		t.Fatalf("%d pods are governed by a look at the stale cache: this test tells nothing", got)
	}
	cached = nil
	matters := statusChanges()
	if !matters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: counted}) {
		t.Fatal("the event of the status asks for nothing")
	}
	r.reconcile("ns")
	mended := read()
	if governed(mended) != 0 {
		t.Errorf("%d pods are governed, and there is none", governed(mended))
	}
	if matters.Update(event.UpdateEvent{ObjectOld: mended, ObjectNew: mended}) || matters.Create(event.CreateEvent{Object: mended}) {
		t.Error("events that change no status ask for a look")
	}
}
