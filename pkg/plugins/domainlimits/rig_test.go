// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
)

// TestMain settles how hard the properties are tried, unless flags say otherwise, and fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "1000"})
	metrics.Register()
	goleak.VerifyTestMain(m)
}

// rig is the plugin over the scheduler's real cache and snapshot, with the test in the place of everything else.
type rig struct {
	placementtest.TB
	ctx      context.Context
	logger   logr.Logger
	pl       *domainlimits.DomainLimits
	cache    cache.Cache
	snapshot *cache.Snapshot
}

// handle is as much of the framework as the plugin asks for.
type handle struct {
	fwk.Handle
	snapshot *cache.Snapshot
}

// factory is shared: it is never started, and to make one takes longer than a test.
var factory = informers.NewSharedInformerFactory(fake.NewClientset(), 0)

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return factory }
func (h handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }

// KubeConfig is none: there is no API server to have policies.
func (h handle) KubeConfig() *rest.Config { return nil }

func newRig(ctx context.Context, t placementtest.TB, defaults ...config.DomainLimit) *rig {
	t.Helper()
	r := &rig{TB: t, ctx: ctx, logger: logr.Discard(), snapshot: cache.NewEmptySnapshot()}
	r.cache = cache.New(ctx, nil, false, false)
	pl, err := domainlimits.New(ctx, &config.DomainLimitsArgs{DefaultLimits: defaults}, handle{snapshot: r.snapshot})
	r.must(err)
	r.pl = pl.(*domainlimits.DomainLimits)
	return r
}

// must stops the test at what cannot happen.
func (r *rig) must(err error) { r.Helper(); placementtest.Must(r, err) }

// node is in the notation "n1 rack=a zone=b".
func node(text string) *st.NodeWrapper {
	words := strings.Fields(text)
	n := st.MakeNode().Name(words[0])
	for _, label := range words[1:] {
		key, value, _ := strings.Cut(label, "=")
		n.Label(key, value)
	}
	return n
}

func (r *rig) join(texts ...string) *rig {
	for _, text := range texts {
		r.cache.AddNode(r.logger, node(text).Obj())
	}
	return r
}

// web is a pod of the workload web, in a revision, with limits; "" is none.
func web(name, revision, limits string) *st.PodWrapper {
	p := st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web").Label("pod-template-hash", revision)
	if limits != "" {
		p.Annotation(clusterview.DomainLimitsAnnotation, limits)
	}
	return p
}

var daemonSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}

// runs puts a pod on a node.
func (r *rig) runs(nodeName string, pod *st.PodWrapper) *corev1.Pod {
	r.Helper()
	p := pod.Node(nodeName).Obj()
	r.must(r.cache.AddPod(r.logger, p))
	return p
}

// nodes takes the snapshot of a cycle and returns its nodes, in the order of their names.
func (r *rig) nodes() []fwk.NodeInfo {
	r.Helper()
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
	all, err := r.snapshot.NodeInfos().List()
	r.must(err)
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) })
	return all
}

// filter goes through a cycle's PreFilter and Filter, and returns what is said of each node.
func (r *rig) filter(pod *corev1.Pod) (fits []string, diagnosis framework.Diagnosis) {
	r.Helper()
	nodes := r.nodes()
	diagnosis = framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	state := framework.NewCycleState()
	_, status := r.pl.PreFilter(r.ctx, state, pod, nodes)
	if !status.IsSuccess() && !status.IsSkip() {
		r.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	for _, n := range nodes {
		if !status.IsSkip() {
			if s := r.pl.Filter(r.ctx, state, pod, n); !s.IsSuccess() {
				diagnosis.NodeToStatus.Set(n.Node().Name, s)
				continue
			}
		}
		fits = append(fits, n.Node().Name)
	}
	return fits, diagnosis
}

// place decides a pod, assumes it on the first node that fits, and returns that; "" if none does.
func (r *rig) place(pod *st.PodWrapper) string {
	r.Helper()
	fits, _ := r.filter(pod.Obj())
	if len(fits) == 0 {
		return ""
	}
	assumed := pod.Obj().DeepCopy()
	assumed.Spec.NodeName = fits[0]
	r.must(r.cache.AssumePod(r.logger, assumed))
	return fits[0]
}

// expect fails the test unless exactly these nodes fit the pod.
func (r *rig) expect(step string, pod *st.PodWrapper, want ...string) {
	r.Helper()
	if got, _ := r.filter(pod.Obj()); !slices.Equal(got, want) {
		r.Errorf("%s: %q fit, want %q", step, got, want)
	}
}

func TestNew(t *testing.T) {
	limits := func(property string, pods int64) *config.DomainLimitsArgs {
		return &config.DomainLimitsArgs{DefaultLimits: []config.DomainLimit{{TopologyKey: property, MaxPods: pods}}}
	}
	want := plugintest.WantArguments(t, domainlimits.Name, domainlimits.New, handle{snapshot: cache.NewEmptySnapshot()})
	want("no limits", &config.DomainLimitsArgs{})
	want("limits", limits("rack", 2))
	want("bad limits", limits("node.id", 0), "defaultLimits[0].topologyKey", `"node.id"`, "defaultLimits[0].maxPods")
}

func TestSignPod(t *testing.T) {
	plain := newRig(t.Context(), t)
	if fragments, s := plain.pl.SignPod(t.Context(), web("p", "2", "").Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod without limits is signed %v, %v", fragments, s)
	}
	limited := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 1})
	if fragments, s := limited.pl.SignPod(t.Context(), web("p", "2", "").OwnerReference("ds", daemonSet).Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod of a DaemonSet, which has no default limits, is signed %v, %v", fragments, s)
	}
	plugintest.WantUnsigned(t, plain.pl, web("p", "2", "rack=1"))
	plugintest.WantUnsigned(t, limited.pl, web("p", "2", ""))   // it has default limits
	plugintest.WantUnsigned(t, plain.pl, web("p", "2", "rack")) // they cannot be read
}

// whatIf is a cycle of a pod, and clones of its state in which pods come and go.
type whatIf struct {
	*rig
	pod   *corev1.Pod
	nodes []fwk.NodeInfo
}

func (r *rig) whatIf(pod *corev1.Pod) (*whatIf, fwk.CycleState) {
	r.Helper()
	w := &whatIf{r, pod, r.nodes()}
	state := framework.NewCycleState()
	if _, s := r.pl.PreFilter(r.ctx, state, pod, w.nodes); !s.IsSuccess() {
		r.Fatalf("PreFilter: %v", s)
	}
	return w, state
}

func (w *whatIf) node(name string) fwk.NodeInfo {
	return w.nodes[slices.IndexFunc(w.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == name })]
}

func (w *whatIf) add(state fwk.CycleState, pod *corev1.Pod, node string) {
	w.Helper()
	info, err := framework.NewPodInfo(pod)
	w.must(err)
	if s := w.pl.PreFilterExtensions().AddPod(w.ctx, state, w.pod, info, w.node(node)); !s.IsSuccess() {
		w.Fatal(s)
	}
}

func (w *whatIf) remove(state fwk.CycleState, pod *corev1.Pod, node string) {
	w.Helper()
	info, err := framework.NewPodInfo(pod)
	w.must(err)
	if s := w.pl.PreFilterExtensions().RemovePod(w.ctx, state, w.pod, info, w.node(node)); !s.IsSuccess() {
		w.Fatal(s)
	}
}

func (w *whatIf) fits(state fwk.CycleState) (names []string) {
	for _, n := range w.nodes {
		if w.pl.Filter(w.ctx, state, w.pod, n).IsSuccess() {
			names = append(names, n.Node().Name)
		}
	}
	return names
}

// A what-if says the same as a cycle would in which it had come true.
func TestWhatIfsComeTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t.Context(), t)
		names := []string{"a1", "a2", "b1", "b2", "n"}
		r.join("a1 rack=a", "a2 rack=a", "b1 rack=b", "b2 rack=b", "n")
		serial := 0
		draw := func() (*corev1.Pod, string) {
			serial++
			revision := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
			on := rapid.SampledFrom(names).Draw(t, "node")
			p := web(fmt.Sprint("x", serial), revision, "").Node(on)
			if rapid.IntRange(0, 4).Draw(t, "terminating") == 0 {
				p.Terminating()
			}
			return p.Obj(), on
		}
		var there []*corev1.Pod
		for range rapid.IntRange(0, 8).Draw(t, "there") {
			p, _ := draw()
			r.must(r.cache.AddPod(r.logger, p))
			there = append(there, p)
		}
		limits := fmt.Sprintf("node.name=%d,rack=%d", rapid.IntRange(1, 3).Draw(t, "perNode"), rapid.IntRange(1, 4).Draw(t, "perRack"))
		w, state := r.whatIf(web("p", "2", limits).Obj())
		before, original := w.fits(state), state
		state = original.Clone()
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			if len(there) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				w.remove(state, there[i], there[i].Spec.NodeName)
				r.must(r.cache.RemovePod(r.logger, there[i]))
				there = slices.Delete(there, i, i+1)
				continue
			}
			p, on := draw()
			w.add(state, p, on)
			r.must(r.cache.AddPod(r.logger, p))
			there = append(there, p)
		}
		if now := w.fits(original); !slices.Equal(now, before) {
			t.Fatalf("without what is supposed %q fit, and %q by now", before, now)
		}
		supposed := w.fits(state)
		if came, _ := r.filter(w.pod); !slices.Equal(supposed, came) {
			t.Fatalf("under %s, the what-if lets %q fit, and when it is true %q do", limits, supposed, came)
		}
	})
}
