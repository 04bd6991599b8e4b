// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// configuration is the shipped profile's plugins, and those of kube-scheduler.
const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: espalier-scheduler
  plugins:
    queueSort: {enabled: [{name: PreassignedFirst}], disabled: [{name: PrioritySort}]}
    multiPoint:
      enabled:
      - {name: Preferences}
      - {name: NodePlugins}
      - {name: Constraints}
      - {name: Platform}
      - {name: HostPorts}
      - {name: DomainLimits}
      - {name: NodeLifetime}
      - {name: SpreadTree, weight: 10000}
      # DynamicResources wants a cluster's devices to be tracked.
      disabled: [{name: NodePorts}, {name: DynamicResources}]
    preScore: {disabled: [{name: PodTopologySpread}]}
    score: {disabled: [{name: PodTopologySpread}]}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - {name: NodeLifetime, args: {leases: Annotations}}
`

// rig is two frameworks of one profile over the scheduler's real cache, snapshot and nominator: one is wrapped, and one judges it by the
// full path. The judge has plugins of its own, so that nothing it asks is remembered by what it judges.
type rig struct {
	placementtest.TB
	ctx       context.Context
	logger    klog.Logger
	cache     cache.Cache
	snapshot  *cache.Snapshot
	nominator nominations
	clock     *clocktesting.FakePassiveClock // of leases
	wrapped   framework.Framework
	judge     framework.Framework
}

func newRig(ctx context.Context, t placementtest.TB) *rig {
	t.Helper()
	r := &rig{TB: t, logger: logr.Discard(), snapshot: cache.NewEmptySnapshot(), clock: clocktesting.NewFakePassiveClock(noon)}
	r.ctx = klog.NewContext(ctx, r.logger)
	r.cache = cache.New(r.ctx, nil, false, false)
	r.nominator = make(nominations)
	profiles := profile.Map{"espalier-scheduler": r.framework(configuration)}
	var changes podcount.Changes
	r.cache, changes = track(r.cache)
	if without := wrap(r.logger, profiles, nil, changes, plugins.NodeLocal()); len(without) > 0 {
		t.Fatal(without)
	}
	r.wrapped, r.judge = profiles["espalier-scheduler"], r.framework(configuration)
	breakTies(r.judge, hinterOf(r.judge))
	return r
}

// noon is when a rig begins.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// factory is shared: it is never started, and to make one takes longer than a test.
var (
	client  = fake.NewClientset()
	factory = informers.NewSharedInformerFactory(client, 0)
)

// profile is the first profile of a configuration.
func (r *rig) profile(configuration string) schedulerapi.KubeSchedulerProfile {
	r.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	must(r, err)
	return obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles[0]
}

// framework is what is made of it.
func (r *rig) framework(configuration string, opts ...frameworkruntime.Option) framework.Framework {
	r.Helper()
	first := r.profile(configuration)
	registry := frameworkplugins.NewInTreeRegistry()
	must(r, registry.Merge(plugins.Registry()))
	registry[nodelifetime.Name] = nodelifetime.By(r.clock.Now)
	f, err := frameworkruntime.NewFramework(r.ctx, registry, &first,
		append(opts,
			frameworkruntime.WithClientSet(client),
			frameworkruntime.WithInformerFactory(factory),
			frameworkruntime.WithSnapshotSharedLister(r.snapshot),
			frameworkruntime.WithMutableSnapshotLister(r.snapshot),
			frameworkruntime.WithPodNominator(r.nominator),
		)...)
	must(r, err)
	return f
}

// nominations is a nominator, by node.
type nominations map[string][]fwk.PodInfo

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n[node] }
func (n nominations) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	n[info.NominatedNodeName] = append(n[info.NominatedNodeName], pod)
}
func (n nominations) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}
func (n nominations) DeleteNominatedPodIfExists(pod *corev1.Pod) {
	for node := range n {
		n[node] = slices.DeleteFunc(n[node], func(p fwk.PodInfo) bool { return p.GetPod().UID == pod.UID })
	}
}

// hint takes the snapshot of a cycle, and returns what the wrapped profile proposes.
func (r *rig) hint(pod *corev1.Pod) (node string, state *framework.CycleState) {
	r.Helper()
	node, state, refused := r.propose(pod)
	if refused != nil {
		r.Fatalf("PreFilter of %s: %v", pod.Name, refused.PreFilterMsg)
	}
	return node, state
}

// propose is hint of a pod that may be refused at once: then it returns the diagnosis.
func (r *rig) propose(pod *corev1.Pod) (node string, state *framework.CycleState, refused *framework.Diagnosis) {
	r.Helper()
	must(r, r.cache.UpdateSnapshot(r.logger, r.snapshot))
	state = framework.NewCycleState()
	_, status, plugins := r.wrapped.RunPreFilterPlugins(r.ctx, state, pod)
	switch {
	case status.IsRejected():
		return "", state, &framework.Diagnosis{PreFilterMsg: status.Message(), UnschedulablePlugins: plugins, NodeToStatus: framework.NewDefaultNodeToStatus()}
	case !status.IsSuccess():
		r.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	return r.wrapped.GetNodeHint(r.ctx, pod, nil, state, 1), state, nil
}

// diagnosis is what the full path says of a pod that fits nowhere.
func (r *rig) diagnosis(f framework.Framework, state *framework.CycleState, pod *corev1.Pod) *framework.Diagnosis {
	r.Helper()
	d := &framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	all, err := r.snapshot.NodeInfos().List()
	must(r, err)
	for _, n := range all {
		s := f.RunFilterPluginsWithNominatedPods(r.ctx, state, pod, n)
		if s.IsSuccess() {
			r.Fatalf("%s fits on %s", pod.Name, n.Node().Name)
		}
		d.NodeToStatus.Set(n.Node().Name, s)
		d.AddPluginStatus(s)
	}
	return d
}

// words are those in which a pod is told that it fits nowhere, once preemption was tried.
func (r *rig) words(f framework.Framework, state *framework.CycleState, pod *corev1.Pod, d *framework.Diagnosis) string {
	r.Helper()
	// Preemption reads the pod anew.
	known := factory.Core().V1().Pods().Informer().GetIndexer()
	must(r, known.Add(pod))
	defer func() { must(r, known.Delete(pod)) }()
	result, status := f.RunPostFilterPlugins(r.ctx, state, pod, d.NodeToStatus)
	if result != nil && result.NominatingInfo != nil && result.NominatedNodeName != "" {
		r.Fatalf("%s has victims on %s", pod.Name, result.NominatedNodeName)
	}
	d.PostFilterMsg = status.Message()
	all, err := r.snapshot.NodeInfos().List()
	must(r, err)
	return (&framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: *d}).Error()
}

// best judges the same snapshot: the nodes that fit, and of those the ones that the tree scores best.
func (r *rig) best(pod *corev1.Pod) (fit, best []string) {
	r.Helper()
	state := framework.NewCycleState()
	result, status, _ := r.judge.RunPreFilterPlugins(r.ctx, state, pod)
	if !status.IsSuccess() {
		r.Fatalf("the judge's PreFilter of %s: %v", pod.Name, status)
	}
	all, err := r.snapshot.NodeInfos().List()
	must(r, err)
	var nodes []fwk.NodeInfo
	for _, n := range all {
		if !result.AllNodes() && !result.NodeNames.Has(n.Node().Name) {
			continue
		}
		if r.judge.RunFilterPluginsWithNominatedPods(r.ctx, state, pod, n).IsSuccess() {
			nodes, fit = append(nodes, n), append(fit, n.Node().Name)
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	if s := r.judge.RunPreScorePlugins(r.ctx, state, pod, nodes); !s.IsSuccess() {
		r.Fatalf("PreScore of %s: %v", pod.Name, s)
	}
	scores, status := r.judge.RunScorePlugins(r.ctx, state, pod, nodes)
	if !status.IsSuccess() {
		r.Fatalf("Score of %s: %v", pod.Name, status)
	}
	for _, n := range scores {
		if slices.ContainsFunc(n.Scores, func(s fwk.PluginScore) bool {
			return s.Name == spreadtree.Name && s.Score == 10000*fwk.MaxScore
		}) {
			best = append(best, n.Name)
		}
	}
	return fit, best
}

// assume does what the scheduler does with a node it has chosen.
func (r *rig) assume(pod *corev1.Pod, state fwk.CycleState, node string) *corev1.Pod {
	r.Helper()
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	must(r, r.cache.AssumePod(r.logger, assumed))
	if s := r.wrapped.RunReservePluginsReserve(r.ctx, state, assumed, node); !s.IsSuccess() {
		r.Fatalf("Reserve of %s: %v", pod.Name, s)
	}
	return assumed
}

// must ends the test if there is an error.
var must = placementtest.Must
