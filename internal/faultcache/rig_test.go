// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when all tests begin.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// rig is a cache whose informers are played by the test, and whose clock is.
type rig struct {
	testing.TB
	*Cache
	clock  *clocktesting.FakeClock
	client *fake.Clientset
	policy *clusterview.Policy
	// policies rule if policy is nil, in their order.
	policies []*clusterview.Policy
	// asked is the policy that comes to be known before pods are told; it may be nil.
	asked  func() *clusterview.Policy
	events []string
	// about are the objects that were given with events.
	about []runtime.Object
	node  int
}

// Eventf takes an Event, as "reason of Kind/name: note".
func (r *rig) Eventf(regarding, related runtime.Object, kind, reason, _, note string, args ...any) {
	r.about = append(r.about, regarding, related)
	ref := regarding.(*corev1.ObjectReference)
	r.events = append(r.events, fmt.Sprintf("%s %s of %s/%s: %s", kind, reason, ref.Kind, ref.Name, fmt.Sprintf(note, args...)))
}

func options() Options {
	return Options{
		SchedulerName: "espalier", Rule: failure.Rule{Threshold: 5, Window: 5 * time.Minute}, HalfOpen: true, OwnErrors: true,
		ProvenAfter: 10 * time.Second, RecordNamespace: "kube-system", Suspects: 2,
	}
}

// without counts a workload's own errors, so that a test needs no other nodes.
func without(o Options) Options {
	o.OwnErrors = false
	return o
}

// newRig has nodes n1 to n9.
func newRig(t testing.TB, o Options, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{TB: t, clock: clocktesting.NewFakeClock(noon), client: fake.NewClientset(objects...)}
	return r.renew(o)
}

// newLeader is of a scheduler that places pods.
func newLeader(t testing.TB, o Options) *rig {
	t.Helper()
	r := newRig(t, o)
	r.activate()
	return r
}

// renew is another scheduler in the same cluster, at the same time.
func (r *rig) renew(o Options) *rig {
	r.Helper()
	next := &rig{TB: r.TB, clock: r.clock, client: r.client}
	c, err := New(r.Context(), o, Sources{
		Client: next.client, Informers: informers.NewSharedInformerFactory(next.client, 0), Clock: next.clock, Recorder: next,
		Policy: func(p *corev1.Pod) *clusterview.Policy {
			return cmp.Or(next.policy, clusterview.Governing(next.policies, p))
		},
	})
	must(r, err)
	next.Cache = c
	for i := range 9 {
		next.join(st.MakeNode().Name(fmt.Sprintf("n%d", i+1)).Obj())
	}
	next.observeAll()
	return next
}

// join is a node as the informer has it.
func (r *rig) join(node *corev1.Node) {
	r.Helper()
	must(r, r.Informers.Core().V1().Nodes().Informer().GetIndexer().Add(node))
}

// part is a node that is deleted.
func (r *rig) part(name string) {
	r.Helper()
	nodes := r.Informers.Core().V1().Nodes().Informer().GetIndexer()
	node, _, err := nodes.GetByKey(name)
	must(r, err)
	must(r, nodes.Delete(node))
	r.onNodeGone(node)
}

// again is a node that was made now under a name that another had, as the informer has it.
func (r *rig) again(name string) *corev1.Node {
	r.Helper()
	node := st.MakeNode().Name(name).UID("another").Obj()
	node.CreationTimestamp = metav1.Time{Time: r.clock.Now()}
	r.join(node)
	return node
}

// forgive is a node that somebody says he has mended, as the informer has it.
func (r *rig) forgive(node string, at time.Time) {
	r.Helper()
	r.join(st.MakeNode().Name(node).Annotation(clusterview.FailuresForgivenAnnotation, at.Format(time.RFC3339)).Obj())
}

// nodeNow is a node as the informer has it.
func (r *rig) nodeNow(name string) *corev1.Node {
	r.Helper()
	n, err := r.nodes.Get(name)
	must(r, err)
	return n
}

// annotate has a node say when somebody has mended it, and shows that as a change of the node.
func (r *rig) annotate(name, at string) {
	r.Helper()
	before := r.nodeNow(name)
	after := before.DeepCopy()
	after.Annotations = map[string]string{clusterview.FailuresForgivenAnnotation: at}
	r.join(after)
	r.onNode(before, after)
}

var must = placementtest.Must

// replicaSet owns the pods of a rig's workload.
var replicaSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}

// pod is one of workload web in revision 1, on a node.
func pod(name, node string) *st.PodWrapper { return podOfWorkload("web", name, node) }

// podOfWorkload is one of a workload of namespace ns, or of another that is named before it.
func podOfWorkload(workload, name, node string) *st.PodWrapper {
	namespace, workload, found := strings.Cut(workload, "/")
	if !found {
		namespace, workload = "ns", namespace
	}
	p := st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName("espalier").Node(node).
		OwnerReference(workload, replicaSet).Label("controller-revision-hash", "1")
	p.OwnerReferences[0].UID = "uid-of-" + p.OwnerReferences[0].UID
	return p
}

// ofReplicaSet makes a pod one of a ReplicaSet that has a UID, in revision 1.
func ofReplicaSet(p *corev1.Pod, uid types.UID) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: uid, Controller: new(true)}}
	p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
	return p
}

// seeReplicaSet has the informer have the ReplicaSet, and returns what takes it away again.
func (r *rig) seeReplicaSet(uid types.UID) (rs *appsv1.ReplicaSet, gone func()) {
	r.Helper()
	rs = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: uid}}
	sets := r.Informers.Apps().V1().ReplicaSets().Informer().GetIndexer()
	must(r, sets.Add(rs))
	return rs, func() {
		r.Helper()
		must(r, sets.Delete(rs))
	}
}

// warning is a kubelet's, of a pod.
func warning(pod types.UID, node, reason string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Type: corev1.EventTypeWarning, Reason: reason,
		Source: corev1.EventSource{Component: "kubelet", Host: node}, FirstTimestamp: metav1.Time{Time: at},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: string(pod), UID: pod},
	}
}

// crashed is a pod that has crashed at a time, and waits to be started again.
func crashed(p *corev1.Pod, at time.Time) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Time{Time: at}}},
	}}
	return p
}

// web is the workload's revision.
func web(revision string) clusterview.Identity {
	return clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: "StatefulSet.apps", Name: "web"}, Revision: revision}
}

// see has the informers show a pod as it is now.
func (r *rig) see(p *corev1.Pod) {
	r.Helper()
	if ended(p) {
		// To the scheduler's informer that is as if it were deleted.
		if obj, exists, _ := r.pods.GetIndexer().Get(p); exists {
			r.vanish(obj.(*corev1.Pod))
		}
		trimmed, err := trim(p)
		must(r, err)
		must(r, r.ended.GetIndexer().Add(trimmed))
		r.onPod(trimmed)
		return
	}
	must(r, r.pods.GetIndexer().Add(p))
	r.onPod(p)
}

// leave has the informers show that a pod was deleted.
func (r *rig) leave(p *corev1.Pod) {
	r.Helper()
	gone := p.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: r.clock.Now()}
	r.vanish(gone)
}

// vanish has the scheduler's informer show no more of a pod than that it is gone, as of one that has ended.
func (r *rig) vanish(p *corev1.Pod) {
	r.Helper()
	must(r, r.pods.GetIndexer().Delete(p))
	r.onPodGone(p)
}

// rejected is a pod that its kubelet has refused now.
func (r *rig) rejected(p *st.PodWrapper) *corev1.Pod {
	pod := p.Obj().DeepCopy()
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "OutOfcpu"
	pod.Status.StartTime = &metav1.Time{Time: r.clock.Now()}
	return pod
}

// ready is a pod that has been ready since now.
func (r *rig) ready(p *st.PodWrapper) *corev1.Pod {
	pod := p.Obj().DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: r.clock.Now()}}}
	return pod
}

// reject has pods refused on a node, with names of their own.
func (r *rig) reject(workload, node string, pods int) {
	r.Helper()
	for range pods {
		r.node++
		r.see(r.rejected(podOfWorkload(workload, fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(workload, "/", "-"), node, r.node), node)))
	}
}

// pass lets time pass, and does what is due meanwhile.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	for end := r.clock.Now().Add(d); ; {
		next := r.tick()
		if next.After(end) {
			r.clock.SetTime(end)
			r.tick()
			return
		}
		r.clock.SetTime(next)
	}
}

// activate makes the rig's scheduler the one that places pods.
func (r *rig) activate() {
	select {
	case <-r.Cache.ready:
	default:
		close(r.Cache.ready)
	}
	r.Activate(r.Context())
}

// record wants the record of web's revision 1 on a node.
func (r *rig) record(node string, want placement.Record) {
	r.Helper()
	if got := r.For(pod("asking", "").Obj()).Record(web("1"), node); got != want {
		r.Errorf("the record of %s is %+v, want %+v", node, got, want)
	}
}

// announced wants the Events since it was last asked: each begins with a text, in order.
func (r *rig) announced(want ...string) {
	r.Helper()
	got := r.events
	r.events = nil
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		r.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
