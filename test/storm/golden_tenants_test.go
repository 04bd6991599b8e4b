// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// team has a pod be of an allocation, and request so much.
func team(name, amount string) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) {
		p.Label("team", name).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: amount})
	}
}

// allocation makes one of the partition shared, for the pods of its team.
func (g *goldenRun) allocation(name, reserved string, how ...func(*placementv1alpha1.AllocationSpec)) {
	g.Helper()
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: placementv1alpha1.AllocationSpec{
		Partition: "shared", Rank: new(int32(100)),
		Assignments: []placementv1alpha1.Assignment{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}, Priority: new(int32(1))}},
	}}
	if reserved != "" {
		a.Spec.Reserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(reserved)}
	}
	for _, h := range how {
		h(&a.Spec)
	}
	g.step("Allocation "+name, func() { g.add(a) })
}

// partition makes one of the nodes of zones a and b.
func (g *goldenRun) partition() {
	g.Helper()
	g.step("Partition shared", func() {
		g.add(&placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "shared", Generation: 1}, Spec: placementv1alpha1.PartitionSpec{
			NodeSelector:      metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: zone, Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}},
			ReservablePercent: 75,
		}})
	})
}

// ordering is how long the order of allocations holds, and something more.
const ordering = 3333 * time.Millisecond

// ordersFirst has the order be computed before each step, so that the next one holds from two seconds after it. Else it would be computed while pods
// are tried, and either may be first.
func (g *goldenRun) ordersFirst() {
	there := false
	g.pause = ordering
	g.first = func() {
		if p := st.MakePod().Namespace(namespace).Name("another").UID("another").SchedulerName("another").Obj(); there {
			g.remove(p.Namespace, p.Name)
		} else {
			g.add(p)
		}
		there = !there
		synctest.Wait()
	}
}

// allocated places pods of allocations, in their order.
func allocated(g *goldenRun) {
	g.start(decode(g.T, "overlays/tenants/scheduler-config.yaml"), nil)
	g.small(6, func(_ int, n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") })
	g.place("of no allocation, before there is any", like("free-0", "spread", "free"))
	g.ordersFirst()
	g.partition()
	g.allocation("prod", "4", func(a *placementv1alpha1.AllocationSpec) { a.RankAdjustment = new(int32(10)) })
	g.allocation("dev", "2")
	g.allocation("workers", "1", func(a *placementv1alpha1.AllocationSpec) {
		a.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "ring", Count: new(int32(2))}}
	})
	g.allocation("capped", "1", func(a *placementv1alpha1.AllocationSpec) { a.MaxUtilizationPercent = new(int32(100)) })
	g.allocation("ssd", "", func(a *placementv1alpha1.AllocationSpec) { a.Traits = map[string]string{"disk": "ssd"} })
	g.allocation("orphan", "1", func(a *placementv1alpha1.AllocationSpec) { a.Partition = "late" })
	g.allocation("orphan-first", "1", func(a *placementv1alpha1.AllocationSpec) { a.Partition, a.Rank = "late", new(int32(1)) })
	g.wait(ordering, "all allocations are in order")
	ring := func(p *st.PodWrapper) { p.Label(clusterview.IdentityGroupLabel, "ring") }
	for i := range 2 {
		g.keep("of an identity group", like(fmt.Sprint("ring-", i), "spread", "ring", team("workers", "100m"), ring))
	}
	g.keep("of an identity group that has as many as it may", like("ring-2", "spread", "ring", team("workers", "100m"), ring))
	g.place("of no allocation, between others", like("free-2", "plain", "free"))
	g.step("pod ring-0 ends", func() { g.remove(namespace, "ring-0"); time.Sleep(ordering) })
	for i, of := range []string{"orphan", "orphan", "orphan-first"} {
		g.keep("of an allocation whose partition is not there", like(fmt.Sprint("orphan-", i), "spread", "orphan", team(of, "100m")))
	}
	g.keep("of an allocation with a trait", like("ssd-0", "spread", "ssd", team("ssd", "100m")))
	g.keep("of an allocation, for a node that is not of its partition", like("dev-90", "plain", "dev", team("dev", "100m"), on(zone, "c")))
	g.step("pod dev-90 has another priority", func() {
		g.changePod("dev-90", func(p *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, clusterview.AllocationPriorityAnnotation, "5")
		})
		time.Sleep(ordering)
	})
	g.remove(namespace, "dev-90")
	g.fills()
	g.capped()
	g.makesWay()
	g.turns()
	g.wait(6*time.Minute, "those that wait are tried again")
}

// fills has an allocation use what others leave unused, until there is no room.
func (g *goldenRun) fills() {
	for i := range 9 {
		g.place("of an allocation that uses what others leave", like(fmt.Sprint("dev-", i), "spread", "dev", team("dev", "1200m")))
	}
	g.place("of no allocation", like("free-1", "spread", "free"))
}

// capped has pods of an allocation wait for its maximum.
func (g *goldenRun) capped() {
	g.keep("of an allocation with a maximum, and makes others leave", like("capped-0", "spread", "capped", team("capped", "600m")))
	g.kubelets("those that leave for capped-0 are gone")
	g.wait(10*time.Second, "capped-0 has its node")
	g.keep("of an allocation with a maximum that is reached", like("capped-1", "spread", "capped", team("capped", "600m")))
	g.held("pod capped-0 ends while pod capped-1 waits, and another one runs before that is tried", func() {
		g.remove(namespace, "capped-0")
		time.Sleep(ordering)
		runs := like("capped-2", "spread", "capped", team("capped", "600m"), annotated(clusterview.AllocationPriorityAnnotation, "50"))
		runs.Spec.NodeName, runs.Status.Phase = nodeName(0), corev1.PodRunning
		g.add(runs)
		synctest.Wait()
		time.Sleep(ordering)
	})
	g.step("pod capped-2 ends", func() { g.remove(namespace, "capped-2"); time.Sleep(ordering) })
}

// makesWay has pods leave for others that come before them.
func (g *goldenRun) makesWay() {
	for i := range 2 {
		name := fmt.Sprint("prod-", i)
		g.keep("of an allocation, and makes others leave", like(name, "spread", "prod", team("prod", "1500m")))
		node := g.pod(namespace, name).Status.NominatedNodeName
		g.place("of an allocation, while its node is nominated for one before it", like(fmt.Sprint("dev-", 20+i), "plain", "dev", team("dev", "10m"), on(corev1.LabelHostname, node), func(p *st.PodWrapper) { p.Priority(int32(10 * i)) }))
		g.kubelets(fmt.Sprintf("those that leave for %s are gone", name))
		g.wait(10*time.Second, name+" has its node")
	}
	g.place("of an allocation, larger than all that comes after it", like("prod-2", "plain", "prod", team("prod", "7")))
	g.refuse(func(b *corev1.Binding) error {
		g.refuse(allow)
		return fail(b)
	})
	g.keep("of an allocation, and the API server fails to bind it once", like("prod-3", "spread", "prod", team("prod", "100m")))
	g.gauges("pods of the partition", "partition_pods", "allocations_unreadable")
}

// turns has pods be taken from the queue in the order of allocations.
func (g *goldenRun) turns() {
	g.held("the Partition of the orphans is there: they are taken by their order, whichever came first", func() {
		g.add(&placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "late", Generation: 1}, Spec: placementv1alpha1.PartitionSpec{
			NodeSelector: metav1.LabelSelector{MatchLabels: map[string]string{zone: "c"}}, ReservablePercent: 75,
		}})
		time.Sleep(2 * ordering)
	})
	g.held("the Partition is deleted while pod prod-31 is in the queue", func() {
		g.add(like("prod-31", "plain", "prod-31", team("prod", "10m")))
		time.Sleep(ordering)
		must(g, g.server.store.Delete(placementv1alpha1.SchemeGroupVersion.WithResource(placementv1alpha1.PartitionResource), "", "shared"))
	})
}

// group makes a PodGroup, of which at least min are placed at once, or any if it is 0.
func (g *goldenRun) group(name string, atLeast int32) {
	g.Helper()
	policy := schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
	if atLeast > 0 {
		policy = schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: atLeast}}
	}
	g.add(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: policy}})
	synctest.Wait()
}

// member is a pod of a PodGroup.
func member(of string) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) {
		delete(p.Obj().Labels, clusterview.WorkloadLabel)
		p.Obj().Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(of)}
	}
}

// grouped places gangs and other groups.
func grouped(g *goldenRun) {
	featuregatetesting.SetFeatureGateDuringTest(g, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	g.start(decode(g.T, "base/scheduler-config.yaml"), nil)
	g.small(6, nothing)
	g.group("gang", 3)
	for i := range 5 {
		g.keep("of a gang of three", like(fmt.Sprint("gang-", i), "spread", "gang", member("gang")))
	}
	g.group("basic", 0)
	for i := range 3 {
		g.keep("of a group without a number", like(fmt.Sprint("basic-", i), "spread", "basic", member("basic")))
	}
	g.group("giants", 2)
	for i := range 2 {
		g.keep("of a gang of which there is room for none", like(fmt.Sprint("giants-", i), "plain", "giants", member("giants"), cpu("7800m", 0)))
	}
	g.place("of no group", like("single-0", "spread", "single"))
}

// allocatedGroups has groups of allocations make others leave.
func allocatedGroups(g *goldenRun) {
	featuregatetesting.SetFeatureGateDuringTest(g, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	g.start(decode(g.T, "overlays/tenants/scheduler-config.yaml"), nil)
	g.small(3, func(_ int, n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") })
	g.ordersFirst()
	g.partition()
	g.allocation("prod", "4", func(a *placementv1alpha1.AllocationSpec) { a.RankAdjustment = new(int32(10)) })
	g.allocation("dev", "1")
	g.wait(ordering, "all allocations are in order")
	for i := range 4 {
		g.keep("of an allocation that uses what others leave", like(fmt.Sprint("dev-", i), "spread", "dev", team("dev", "1500m")))
	}
	g.group("gang", 2)
	for i := range 2 {
		g.keep("of a gang of an allocation, for which others leave", like(fmt.Sprint("gang-", i), "spread", "gang", team("prod", "1500m"), member("gang")))
	}
	g.kubelets("those that leave for the gang are gone")
	g.wait(20*time.Second, "the gang has its nodes")
	g.group("too-large", 2)
	for i := range 2 {
		g.keep("of a gang of an allocation, for which there is no room", like(fmt.Sprint("large-", i), "spread", "large", team("prod", "3900m"), member("too-large")))
	}
}
