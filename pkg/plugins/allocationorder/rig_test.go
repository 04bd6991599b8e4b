// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/tenants"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// configuration has the plugin beside those in-tree, as the overlay has it.
const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ours
  plugins:
    queueSort: {enabled: [{name: AllocationOrder}], disabled: [{name: PrioritySort}]}
    multiPoint:
      enabled: [{name: AllocationOrder}]
      disabled: [{name: DynamicResources}]
    postFilter: {enabled: [{name: AllocationOrder}]}
`

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a cluster that a test has in its hands, with the plugin in a profile over it.
type rig struct {
	testing.TB
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	budgets []runtime.Object
	all     []*allocations.Allocation
	made    int

	// What follows is there after start.
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	f       framework.Framework
	pl      *AllocationOrder
	tenants *tenants.Tenants
	events  *events.FakeRecorder
	queue   internalqueue.SchedulingQueue
	// woken are the pods that were put into the queue last.
	woken map[string]*corev1.Pod
}

func (r *rig) must(err error) { r.Helper(); placementtest.Must(r, err) }

// node adds one of the partition, with so many CPUs and labels.
func (r *rig) node(name string, cpu int64, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"pool": "p", corev1.LabelHostname: name}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("100")}
	r.nodes = append(r.nodes, n)
	return n
}

// allocation adds one of the partition p, for the pods of its team, that reserves so many CPUs if it is not 0.
func (r *rig) allocation(name string, cpu int64, change ...func(*placementv1alpha1.AllocationSpec)) *rig {
	r.made++
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(r.made) * time.Second))}}
	a.Spec.Partition = "p"
	a.Spec.Assignments = []placementv1alpha1.Assignment{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}}}
	if cpu > 0 {
		a.Spec.Reserved = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
	}
	for _, c := range change {
		c(&a.Spec)
	}
	r.all = append(r.all, allocations.ReadAllocation(a))
	return r
}

// pod adds one of a team that requests some CPUs, on a node unless that is "". Each is younger than those before.
func (r *rig) pod(name, team string, cpu int64, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	r.made++
	at := metav1.NewTime(begin.Add(time.Duration(r.made) * time.Second))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"team": team}, Annotations: map[string]string{}, CreationTimestamp: at},
		Spec: corev1.PodSpec{SchedulerName: "ours", NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)},
		}}}},
	}
	if node != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	}
	for _, c := range change {
		c(p)
	}
	r.pods = append(r.pods, p)
	return p
}

// ready makes a pod one that is ready.
func ready(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// budget lets so many pods of a team be disrupted, or of all in the namespace where that is "", of those that were added.
func (r *rig) budget(team string, allowed int32) {
	var healthy int32
	selector := &metav1.LabelSelector{}
	if team != "" {
		selector.MatchLabels = map[string]string{"team": team}
	}
	for _, p := range r.pods {
		if p.Namespace == "ns" && (team == "" || p.Labels["team"] == team) && podutil.IsPodReady(p) {
			healthy++
		}
	}
	r.budgets = append(r.budgets, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "budget-" + team}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: healthy - allowed},
	})
}

// start makes the profile over what was added.
func (r *rig) start() *rig {
	r.Helper()
	objects := slices.Clone(r.budgets)
	for _, name := range []string{"ns", "far"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, n := range r.nodes {
		objects = append(objects, n)
	}
	for _, p := range r.pods {
		objects = append(objects, p)
	}
	r.client = fake.NewClientset(objects...)
	// Which pods there are is for the test to say.
	for _, verb := range []string{"delete", "patch"} {
		r.client.PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	}
	r.factory = informers.NewSharedInformerFactory(r.client, 0)
	var partitions []*allocations.Partition
	for _, name := range []string{"p", "q"} {
		p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": name}
		partitions = append(partitions, allocations.ReadPartition(p))
	}
	r.tenants = tenants.Fixed(r.factory, "ours", func(pods map[string]*corev1.Pod) { r.woken = pods }, partitions, r.all)
	r.events = events.NewFakeRecorder(100)
	r.queue = internalqueue.NewSchedulingQueue(func(a, b fwk.QueuedEntityInfo) bool { return r.pl.Less(a, b) }, r.factory)
	r.profile()
	r.factory.Start(r.Context().Done())
	r.factory.WaitForCacheSync(r.Context().Done())
	r.tenants.Compute()
	return r
}

// profile makes one over the nodes and pods that there are, in which they are tried from then on. It shares what is known of tenants with those
// before it.
func (r *rig) profile() {
	r.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	r.must(err)
	registry := frameworkplugins.NewInTreeRegistry()
	r.must(registry.Merge(frameworkruntime.Registry{
		Name: func(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			r.pl = newOver(r.tenants, handle)
			return r.pl, nil
		},
	}))
	snapshot := cache.NewSnapshot(r.assigned(), r.nodes)
	f, err := frameworkruntime.NewFramework(r.Context(), registry, &obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles[0],
		frameworkruntime.WithClientSet(r.client), frameworkruntime.WithInformerFactory(r.factory), frameworkruntime.WithEventRecorder(r.events),
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithMutableSnapshotLister(snapshot), frameworkruntime.WithPodNominator(r.queue),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()), frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	)
	r.must(err)
	r.Cleanup(func() { _ = f.Close() })
	r.f = f
}

// again has these pods and no others be there, the order computed anew, and another profile tell where they fit.
func (r *rig) again(pods ...*corev1.Pod) {
	r.Helper()
	r.pods = pods
	var all []any
	for _, p := range pods {
		all = append(all, p)
	}
	r.must(r.factory.Core().V1().Pods().Informer().GetIndexer().Replace(all, ""))
	r.tenants.Compute()
	r.profile()
}

func (r *rig) assigned() (on []*corev1.Pod) {
	for _, p := range r.pods {
		if p.Spec.NodeName != "" {
			on = append(on, p)
		}
	}
	return on
}

// try has a pod tried as the scheduler does: where it fits, and what PostFilter says if that is nowhere.
func (r *rig) try(pod *corev1.Pod) (fits []string, result *fwk.PostFilterResult, status *fwk.Status) {
	r.Helper()
	state := framework.NewCycleState()
	_, status, _ = r.f.RunPreFilterPlugins(r.Context(), state, pod)
	if !status.IsSuccess() {
		return nil, nil, status
	}
	statuses := framework.NewDefaultNodeToStatus()
	nodes, err := r.f.SnapshotSharedLister().NodeInfos().List()
	r.must(err)
	for _, n := range nodes {
		s := r.f.RunFilterPluginsWithNominatedPods(r.Context(), state, pod, n)
		if s.IsSuccess() {
			fits = append(fits, n.Node().Name)
			continue
		}
		statuses.Set(n.Node().Name, s)
	}
	if len(fits) > 0 {
		slices.Sort(fits)
		return fits, nil, nil
	}
	result, status = r.f.RunPostFilterPlugins(r.Context(), state, pod, statuses)
	return nil, result, status
}

// wantEvicted wants a pod to be nominated for a node, and just these pods to be deleted for it. Without a node it wants nobody to go, and the
// message to have a part.
func (r *rig) wantEvicted(pod *corev1.Pod, node string, want ...string) {
	r.Helper()
	r.client.ClearActions()
	fits, result, status := r.try(pod)
	if len(fits) > 0 {
		r.Fatalf("%s fits on %q", pod.Name, fits)
	}
	got := r.deleted()
	if node == "" {
		if status.IsSuccess() || len(got) > 0 || len(want) > 0 && !strings.Contains(status.Message(), want[0]) {
			r.Errorf("%s: %v, and evicted are %q; want nobody, and %q", pod.Name, status, got, want)
		}
		return
	}
	if !status.IsSuccess() || result.NominatedNodeName != node || !slices.Equal(got, want) {
		r.Errorf("%s: %v, nominated %+v, and evicted are %q; want %q on %s", pod.Name, status, result, got, want, node)
	}
}

// asked reports whether the API server is only asked whether it lets a pod go.
func asked(a clienttesting.Action) bool {
	d, is := a.(clienttesting.DeleteActionImpl)
	return is && len(d.DeleteOptions.DryRun) > 0
}

func (r *rig) logger() klog.Logger { return klog.FromContext(r.Context()) }

func newRig(t testing.TB) *rig { return &rig{TB: t} }

// newTeams has prod, which reserves so many CPUs, come before dev. There is a node n, if it is to have any CPUs.
func newTeams(t testing.TB, reserved int64, cpu ...int64) *rig {
	r := newRig(t).allocation("prod", reserved).allocation("dev", 0)
	for _, c := range cpu {
		r.node("n", c)
	}
	return r
}

// ends has a pod terminate.
func ends(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: begin} }

// wantNominated wants so many pods to be nominated for a node.
func (r *rig) wantNominated(when, node string, want int) {
	r.Helper()
	if infos := r.queue.NominatedPodsForNode(node); len(infos) != want {
		r.Errorf("%s: %d are nominated, want %d", when, len(infos), want)
	}
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}
