// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// TestMain settles how hard the properties are tried, unless flags say otherwise, and fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "2000", "rapid.steps": "40"})
	metrics.Register()
	goleak.VerifyTestMain(m)
}

// rig is the plugin over the scheduler's real cache and snapshot, with the test in the place of the filters and of the API server.
type rig struct {
	placementtest.TB
	ctx      context.Context
	logger   klog.Logger
	pl       *SpreadTree
	cache    cache.Cache
	snapshot *cache.Snapshot

	events    *events.FakeRecorder
	mu        sync.RWMutex // guards nominated
	nominated map[string][]fwk.PodInfo
}

// handle is as much of the framework as the plugin asks for.
type handle struct {
	fwk.Handle
	*rig
	factory informers.SharedInformerFactory
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return nil }
func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.events }
func (h *handle) ProfileName() string                                    { return "rig" }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return parallelize.NewParallelizer(4) }

// factory is shared: it is never started, and to make one takes longer than a test.
var factory = informers.NewSharedInformerFactory(fake.NewClientset(), 0)

// args are the defaults.
func args() *config.SpreadTreeArgs {
	return &config.SpreadTreeArgs{CountRevisions: config.CountNewest, NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven, DecisionRecord: config.DecisionRecordEnabled}
}

func newRig(ctx context.Context, t placementtest.TB, args *config.SpreadTreeArgs) *rig {
	t.Helper()
	r := &rig{TB: t, logger: logr.Discard(), snapshot: cache.NewEmptySnapshot(), events: events.NewFakeRecorder(1000)}
	r.ctx = klog.NewContext(ctx, r.logger)
	r.cache = cache.New(r.ctx, nil, false, false)
	pl, err := New(r.ctx, args, &handle{rig: r, factory: factory})
	r.must(err)
	r.pl = pl.(*SpreadTree)
	return r
}

// join adds a node with labels, in the notation "zone=a".
func (r *rig) join(name string, labels ...string) *corev1.Node {
	node := labelled(name, labels...).Obj()
	r.cache.AddNode(r.logger, node)
	return node
}

// zoned adds nodes, each in the zone that its name begins with.
func (r *rig) zoned(names ...string) *rig {
	for _, name := range names {
		r.join(name, "zone="+name[:1])
	}
	return r
}

func labelled(name string, labels ...string) *st.NodeWrapper {
	n := st.MakeNode().Name(name)
	for _, l := range labels {
		for i := range l {
			if l[i] == '=' {
				n.Label(l[:i], l[i+1:])
			}
		}
	}
	return n
}

// must stops the test at what cannot happen.
func (r *rig) must(err error) { r.Helper(); placementtest.Must(r, err) }

// ofWorkload is a pod of a workload that a label names.
func ofWorkload(workload, name, levels string) *st.PodWrapper {
	return webPod(name, levels).Label(clusterview.WorkloadLabel, workload)
}

// webPod is a pod of the workload web, in revision 2, with levels; "" is none.
func webPod(name, levels string) *st.PodWrapper {
	p := st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web").Label("pod-template-hash", "2")
	if levels != "" {
		p.Annotation(clusterview.PlacementAnnotation, levels)
	}
	return p
}

// runs puts pods of web on a node that are there already.
func (r *rig) runs(node, revision string, pods int) {
	r.Helper()
	for range pods {
		n, err := r.cache.PodCount()
		r.must(err)
		p := webPod(fmt.Sprintf("%s-%d", node, n), "").Label("pod-template-hash", revision).Node(node).Obj()
		r.must(r.cache.AddPod(r.logger, p))
	}
}

// feasible takes the snapshot of a cycle and returns the nodes of these names, all if there are none.
func (r *rig) feasible(names ...string) []fwk.NodeInfo {
	r.Helper()
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
	all, err := r.snapshot.NodeInfos().List()
	r.must(err)
	if names == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n fwk.NodeInfo) bool { return !slices.Contains(names, n.Node().Name) })
}

// rank goes through a cycle's PreScore and Score, and returns the scores.
func (r *rig) rank(pod *corev1.Pod, state fwk.CycleState, fit ...string) map[string]int64 {
	r.Helper()
	nodes := r.feasible(fit...)
	if s := r.pl.PreScore(r.ctx, state, pod, nodes); !s.IsSuccess() {
		r.Fatalf("PreScore of %s: %v", pod.Name, s)
	}
	scores := make(map[string]int64)
	for _, n := range nodes {
		score, s := r.pl.Score(r.ctx, state, pod, n)
		if !s.IsSuccess() {
			r.Fatalf("Score of %s: %v", pod.Name, s)
		}
		scores[n.Node().Name] = score
	}
	return scores
}

// assume does what the scheduler does with a node it has chosen.
func (r *rig) assume(pod *corev1.Pod, node string) *corev1.Pod {
	r.Helper()
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	r.must(r.cache.AssumePod(r.logger, assumed))
	return assumed
}

// place decides a pod and takes the first of the best nodes.
func (r *rig) place(pod *corev1.Pod, fit ...string) string {
	r.Helper()
	state := framework.NewCycleState()
	scores := r.rank(pod, state, fit...)
	for _, name := range sortedKeys(scores) {
		if scores[name] == fwk.MaxScore {
			r.assume(pod, name)
			return name
		}
	}
	r.Fatalf("no node is best for %s: %v", pod.Name, scores)
	return ""
}

func sortedKeys(m map[string]int64) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// batch is that of a pod of which there are no records.
func (r *rig) batch(pod *corev1.Pod) batch {
	return r.pl.trees.batch(r.pl.identifier.Identify(pod), mustLevels(r, pod), nil)
}

// kept is the tally of a pod's batch, nil if there is none. It does not use it.
func (r *rig) kept(pod *corev1.Pod) *tally {
	r.Helper()
	b := r.batch(pod)
	if ofWorkload := r.pl.trees.tallies[b.countsAs.Workload]; ofWorkload != nil {
		if e, ok := ofWorkload.Peek(b.key()); ok {
			return e
		}
	}
	return nil
}

// shown is the tree by which a pod is placed.
func (r *rig) shown(pod *corev1.Pod) tree.View {
	r.Helper()
	is := &tally{batch: r.batch(pod)}
	if kept := r.kept(pod); kept != nil {
		is = kept
	}
	is.refresh(r.pl.trees, is.faults)
	return tree.View{Topology: is.Topology(), Feasibility: r.pl.trees.answers("", new(corev1.Pod)).Feasibility, Tally: is.Tally}
}

// counted is what the tree by which a pod is placed counts on a node, of its revision and its workload.
func (r *rig) counted(pod *corev1.Pod, node string) [2]int64 {
	r.Helper()
	r.pl.trees.index.Refresh(podcount.Snapshot{Nodes: r.feasible()})
	id, known := r.pl.trees.index.Nodes().Find(node)
	if !known {
		r.Fatalf("there is no node %s", node)
	}
	revision, workload := r.shown(pod).Tally.Pods(id)
	return [2]int64{revision, workload}
}

func mustLevels(t placementtest.TB, pod *corev1.Pod) clusterview.Levels {
	t.Helper()
	levels, err := clusterview.LevelsOf(pod, nil, nil)
	placementtest.Must(t, err)
	return levels
}

var daemonSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}

func TestNew(t *testing.T) {
	want := plugintest.WantArguments(t, Name, New, newRig(t.Context(), t, args()).pl.handle)
	want("defaults", args())
	want("bad values", &config.SpreadTreeArgs{CountRevisions: "Some", NodeHint: "off"}, "countRevisions", `"Some"`, "nodeHint", `"off"`)
}

// A pod of a workload that is still growing waits for no other.
func TestEveryPodIsLetIn(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, pod := range []*st.PodWrapper{webPod("p", ""), webPod("q", "sprd=zone"), webPod("r", "").PodGroupName("g")} {
		if s := r.pl.PreEnqueue(r.ctx, pod.Obj()); !s.IsSuccess() {
			t.Errorf("%s: %v", pod.Obj().Name, s)
		}
	}
}

// Equal signatures say that another pod of it gets the same scores.
func TestSignPod(t *testing.T) {
	r := newRig(t.Context(), t, args())
	plugintest.WantUnsigned(t, r.pl, webPod("p", "spread=zone"))
	if fragments, s := r.pl.SignPod(r.ctx, webPod("p", "spread=zone").OwnerReference("ds", daemonSet).Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod that is not spread is signed %v, %v", fragments, s)
	}
}
