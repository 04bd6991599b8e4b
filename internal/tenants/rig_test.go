// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "200"})
	m.Run()
}

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// must ends the test if there is an error.
var must = placementtest.Must

// rig is tenants of a cluster that a test has in its hands.
type rig struct {
	*Tenants
	t          testing.TB
	pods       cache.Indexer
	nodes      cache.Indexer
	namespaces cache.Indexer
	woken      []string
	made       int
}

// newRig has a partition p of one node, and nothing else.
func newRig(t testing.TB) *rig {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	core := factory.Core().V1()
	r := &rig{t: t, pods: core.Pods().Informer().GetIndexer(), nodes: core.Nodes().Informer().GetIndexer(), namespaces: core.Namespaces().Informer().GetIndexer()}
	r.Tenants = newTenants(factory, func(pods map[string]*corev1.Pod) {
		// The queue asks plugins while it takes pods in.
		for _, pod := range pods {
			_ = r.Admit(pod)
			r.woken = append(r.woken, pod.Name)
		}
	})
	for k := range kinds {
		r.of[k] = optionalkind.Known()
	}
	r.schedulers["ours"] = true
	must(r.t, r.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	must(r.t, r.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}}}))
	r.seen(&placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	return r
}

// seen has an object seen, or one of a later generation in its place.
func (r *rig) seen(o metav1.Object) {
	r.t.Helper()
	r.made++
	o.SetGeneration(int64(r.made))
	o.SetCreationTimestamp(metav1.NewTime(begin))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(r.t, err)
	object := &unstructured.Unstructured{Object: content}
	if _, is := o.(*placementv1alpha1.Partition); is {
		handler(r.Tenants, r.partitions, allocations.DecodePartition).Seen(object)
		return
	}
	handler(r.Tenants, r.allocations, allocations.DecodeAllocation).Seen(object)
}

// allocation has one seen that claims the pods of its team.
func (r *rig) allocation(name string, change ...func(*placementv1alpha1.AllocationSpec)) {
	r.t.Helper()
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Spec.Partition = "p"
	a.Spec.Assignments = []placementv1alpha1.Assignment{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}}}
	for _, c := range change {
		c(&a.Spec)
	}
	r.seen(a)
}

// gone has an allocation be deleted.
func (r *rig) gone(allocation string) {
	handler(r.Tenants, r.allocations, allocations.DecodeAllocation).Gone(allocation)
}

// reserving has an allocation reserve so many CPUs.
func reserving(cpus int64) func(*placementv1alpha1.AllocationSpec) {
	return func(s *placementv1alpha1.AllocationSpec) {
		s.Reserved = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}
	}
}

// capped has it run so much of that at most.
func capped(percent int32) func(*placementv1alpha1.AllocationSpec) {
	return func(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = &percent }
}

// identities has it give so many numbers to the pods of group g.
func identities(count int32) func(*placementv1alpha1.AllocationSpec) {
	return func(s *placementv1alpha1.AllocationSpec) {
		s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: &count}}
	}
}

// pod adds a pod of a team, which is younger than those before.
func (r *rig) pod(name, team string, change ...func(*corev1.Pod)) *corev1.Pod {
	r.t.Helper()
	r.made++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"team": team}, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(r.made) * time.Second))},
		Spec: corev1.PodSpec{SchedulerName: "ours", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}
	for _, c := range change {
		c(p)
	}
	must(r.t, r.pods.Add(p))
	return p
}

func (r *rig) podsOf(team string, n int) (all []*corev1.Pod) {
	for i := range n {
		all = append(all, r.pod(fmt.Sprintf("%s-%04d", team, i), team))
	}
	return all
}

// bind gives a pod its node, as the informer shows it then.
func (r *rig) bind(p *corev1.Pod, annotations map[string]string) {
	r.t.Helper()
	bound := p.DeepCopy()
	bound.Spec.NodeName = "n"
	if bound.Annotations == nil {
		bound.Annotations = make(map[string]string)
	}
	maps.Copy(bound.Annotations, annotations)
	must(r.t, r.pods.Update(bound))
}

// admit has the queue ask about pods.
func (r *rig) admit(pods ...*corev1.Pod) {
	for _, p := range pods {
		_ = r.Admit(p)
	}
}

// computes computes the order, and wants just these pods to be put into the queue since that was asked last.
func (r *rig) computes(woken ...string) {
	r.t.Helper()
	r.Compute()
	r.wantWoken(woken...)
}

// take has it be a pod's turn, and reports whether it may be tried.
func (r *rig) take(p *corev1.Pod) bool {
	claims, _ := r.Claims()
	claim, _ := claims.Of(p)
	return claim.Allocation == nil || r.Take(p, claims, claim.Allocation) == nil
}

// reserve gives a pod that is about to be bound its number, and reports whether it has one.
func (r *rig) reserve(p *corev1.Pod) (int, bool) {
	claims, _ := r.Claims()
	claim, _ := claims.Of(p)
	return r.Reserve(p, claims, claim.Allocation)
}

// foundNoPlace has a pod be tried in vain, where others may have been asked to make way.
func (r *rig) foundNoPlace(p *corev1.Pod, others ...*corev1.Pod) {
	r.t.Helper()
	order, _ := r.Order()
	at, ok := order.Place(p)
	if !ok {
		r.t.Fatalf("%s is in no order", p.Name)
	}
	r.FoundNoPlace(at, others...)
}

// wantWoken wants just these pods to have been put into the queue since it was asked last.
func (r *rig) wantWoken(names ...string) {
	r.t.Helper()
	slices.Sort(r.woken)
	if !slices.Equal(r.woken, names) {
		r.t.Errorf("put into the queue were %q, want %q", r.woken, names)
	}
	r.woken = nil
}
