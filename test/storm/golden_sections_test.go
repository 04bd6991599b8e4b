// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"errors"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
)

// sections are all profiles that are shipped. The modes of the chart change the same fields of the same profile as the overlays do.
var sections = []section{
	{"base", "manifests/base, and the same without node hints as espalier-scored", base},
	{"preemption", "manifests/base, on nodes that are full", preemption},
	{"leases", "manifests/overlays/leases", leases},
	{"tenants", "manifests/overlays/tenants", allocated},
	{"groups", "manifests/base, with the feature gate GenericWorkload", grouped},
	{"tenants-groups", "manifests/overlays/tenants, with the feature gate GenericWorkload", allocatedGroups},
	{"node-pool", "manifests/overlays/node-pool", nodePool},
	{"replace-default", "manifests/overlays/replace-default", replaceDefault},
	{"arguments", "manifests/base, with other arguments than the shipped ones", arguments},
	{"sampling", "manifests/base, with the plugin NodeSampling", sampled},
	{"active-active", "manifests/base, where another replica places some workloads", activeActive},
	{"unread", "manifests/base, while policies cannot be read", unread},
}

// wanted are the kinds of pods of which there is to be one at least, by what is said of them.
var wanted = []string{
	"of Deployment", "of StatefulSet", "of Job", "bare", "of DaemonSet", "pinned", "PodGroup", "of a gang", "by its label", "selected by a Service",
	"next revision in a rolling update", "ScheduleAnyway", "DoNotSchedule over two keys", "ScheduleAnyway over two keys", "malformed placement", "under a policy",
	"with Override", "with shares", "that packs", "with limits", "under a ClusterPlacementPolicy", "host port that is free", "host port that is taken", "host port that the node holds",
	"a platform", "constraints", "inline volume of a CSI driver", "runtime handler", "image", "preferred node affinity", "claim that is bound", "is faulty for",
	"makes others leave", "nominated", "with a lease", "of an allocation", "of an identity group", "after a node is about to end",
}

// mayStay are the counters that do not move here, and why.
var mayStay = map[string]string{
	"hints_total{outcome=unused}":                                   "nothing happens between a proposal and the filters",
	"fallbacks_total{reason=unused}":                                "likewise",
	"hints_total{outcome=error}":                                    "no filter fails to answer",
	"fallbacks_total{reason=error}":                                 "likewise",
	"rejections_total{plugin=DomainLimits,reason=policies_unknown}": "Preferences refuses such pods first",
}

// small makes a cluster of a few nodes that are alike but for what runs on them.
func (g *goldenRun) small(n int, how func(i int, n *corev1.Node)) {
	g.Helper()
	g.furnishNodes(n, how)
	g.begins()
}

func nothing(int, *corev1.Node) {}

// cpu has a pod request so much, and have a priority.
func cpu(amount string, priority int32) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) {
		p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: amount}).Priority(priority)
	}
}

// preemption has urgent pods make others leave.
func preemption(g *goldenRun) {
	g.start(decode(g.T, "base/scheduler-config.yaml"), nil)
	g.small(6, nothing)
	g.add(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "safe"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "safe"}}},
	})
	for i := range 12 {
		app := []string{"safe", "loose"}[i%2]
		name := fmt.Sprintf("%s-%d", app, i)
		g.place("fills a node", like(name, "spread", app, cpu("2900m", 0)))
		if i < 11 {
			g.ready(name)
			synctest.Wait()
		}
	}
	g.keep("makes others leave", like("urgent-0", "spread", "urgent", cpu("2900m", 100)))
	g.place("smaller, while a node is nominated for another", like("small-0", "limited", "small", cpu("100m", 0)))
	g.place("as large as what is left where a node is nominated for another", like("small-1", "spread", "small", cpu("2", 0)))
	g.kubelets("those that leave are gone")
	g.wait(10*time.Second, "urgent-0 has its node")
	g.keep("makes others leave, and its binding will be refused", like("urgent-1", "spread", "urgent", cpu("2900m", 100)))
	g.refuse(func(b *corev1.Binding) error {
		g.refuse(allow)
		return noRoom(b)
	})
	g.kubelets("those that leave for urgent-1 are gone")
	for i := range 2 {
		g.keep("makes others leave, as the one before it", like(fmt.Sprint("urgent-", i+2), "spread", "urgent", cpu("2900m", 100)))
	}
	g.kubelets("those that leave are gone, too")
	g.wait(10*time.Second, "the urgent ones have their nodes")
	for i := range 2 {
		g.place("under limits", like(fmt.Sprint("limited-", i), "plain", "limited", cpu("100m", 0), annotated(clusterview.DomainLimitsAnnotation, "zone=1"), on(zone, string("ab"[i]))))
	}
	g.keep("makes one of its own workload leave, for a limit", like("limited-2", "plain", "limited", cpu("100m", 100), annotated(clusterview.DomainLimitsAnnotation, "zone=1"), on(zone, "a")))
	g.kubelets("the one that leaves for a limit is gone")
	g.wait(10*time.Second, "limited-2 has its node")
	g.keep("would make others leave, and must not", like("meek-0", "spread", "meek", cpu("5", 100), func(p *st.PodWrapper) { p.PreemptionPolicy(corev1.PreemptNever) }))
}

// leases places pods with leases on nodes that end.
func leases(g *goldenRun) {
	g.start(decode(g.T, "overlays/leases/scheduler-config.yaml"), nil)
	g.small(6, func(i int, n *corev1.Node) {
		if end := []string{"", "2000-01-01T00:30:00Z", "2000-01-01T02:00:00Z", "tomorrow", "2000-01-01T10:00:00Z", ""}[i]; end != "" {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ValidUntilAnnotation, end)
		}
	})
	for i, lease := range []string{"10m", "1h", "1h", "5h", "5h", "100h", "an hour", "-1h"} {
		g.place(fmt.Sprintf("with a lease of %q", lease), like(fmt.Sprint("lease-", i), "spread", "lease", annotated(clusterview.LeaseAnnotation, lease)))
	}
	for i := range 3 {
		g.place("without a lease", like(fmt.Sprint("free-", i), "spread", "free"))
	}
	g.place("with a lease, where no node lives as long", like("lease-10", "plain", "lease", annotated(clusterview.LeaseAnnotation, "1h"), on(corev1.LabelHostname, nodeName(1))))
	g.place("with a lease, where it is not known when the node ends", like("lease-11", "plain", "lease", annotated(clusterview.LeaseAnnotation, "1h"), on(corev1.LabelHostname, nodeName(3))))
	g.place("with a deadline, which is its lease", like("deadline-0", "spread", "deadline", func(p *st.PodWrapper) { p.Obj().Spec.ActiveDeadlineSeconds = new(int64(3600)) }))
	g.add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sums"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(7200))}})
	synctest.Wait()
	for i := range 2 {
		g.place("with the deadline of its Job, which is its lease", owned(like(fmt.Sprint("sums-", i), "spread", "sums"), "batch/v1", "Job", "sums"))
	}
	g.keep("of a Job that is not known yet", owned(like("late-0", "spread", "late"), "batch/v1", "Job", "late"))
	g.step("Job late is there", func() {
		g.add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(60))}})
	})
	g.keep("with a lease, where the node is to live longer", like("lease-12", "plain", "lease", annotated(clusterview.LeaseAnnotation, "1h"), on(corev1.LabelHostname, nodeName(1))))
	g.node(nodeName(1), "ends later", func(n *corev1.Node) { n.Annotations[clusterview.ValidUntilAnnotation] = "2000-01-01T03:00:00Z" })
	g.refuse(fail)
	g.keep("with a lease, and the API server fails to bind it", like("lease-13", "spread", "lease", annotated(clusterview.LeaseAnnotation, "1h")))
	g.refuse(allow)
	g.wait(30*time.Minute, "pod lease-13 is tried again")
	g.place("with a lease, half an hour later", like("lease-14", "spread", "lease", annotated(clusterview.LeaseAnnotation, "1h30m")))
}

// pool is the label of the nodes of a pool.
const pool = "espalier.dev/node-pool"

// nodePool places pods on nodes of the pool, whatever they say.
func nodePool(g *goldenRun) {
	g.start(decode(g.T, "overlays/node-pool/scheduler-config.yaml"), nil)
	g.small(8, func(i int, n *corev1.Node) {
		if i%2 == 0 {
			n.Labels[pool] = "espalier"
		}
	})
	for i := range 4 {
		g.place("in a pool", like(fmt.Sprint("pool-", i), "spread", "pool"))
	}
	g.place("in a pool, for a node that is not of it", like("pool-4", "plain", "pool", on(corev1.LabelHostname, nodeName(1))))
	g.place("in a pool, pinned", like("pool-5", "plain", "pool", pinned(nodeName(2))))
	g.keep("for a node that is to be of the pool", like("pool-6", "plain", "pool", on(corev1.LabelHostname, nodeName(3))))
	// NodeAffinity says that this does not help: it compares what the pod asks for alone. The pod is tried with all others that have waited for long.
	g.node(nodeName(3), "is of the pool", func(n *corev1.Node) { n.Labels[pool] = "espalier" })
	g.wait(6*time.Minute, "pod pool-6 is tried again")
}

// replaceDefault places pods of the default scheduler beside our own.
func replaceDefault(g *goldenRun) {
	g.start(decode(g.T, "overlays/replace-default/scheduler-config.yaml"), nil)
	g.small(6, func(i int, n *corev1.Node) {
		if i >= 4 {
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"big:1"}, SizeBytes: 900 << 20}}
		}
	})
	for i := range 3 {
		g.place("with an image that some nodes have", like(fmt.Sprint("image-", i), "plain", fmt.Sprint("image-", i), func(p *st.PodWrapper) {
			p.Annotation(clusterview.PlacementAnnotation, "spread=node.name").SchedulerName([]string{shipped, corev1.DefaultSchedulerName}[i%2]).Obj().Spec.Containers[0].Image = "big:1"
		}))
	}
	for i := range 4 {
		p := like(fmt.Sprint("any-", i), "spread", "any")
		if i%2 == 1 {
			p.Spec.SchedulerName = corev1.DefaultSchedulerName
		}
		g.place("of one workload and two schedulers", p)
	}
	for i := range 2 {
		p := like(fmt.Sprint("port-", i), "port", "port", on(corev1.LabelHostname, nodeName(i/2)))
		p.Spec.SchedulerName = []string{shipped, corev1.DefaultSchedulerName}[i]
		g.keep("with a host port that the other scheduler's pod may have", p)
	}
	g.step("pod port-0 ends, which has the port", func() { g.remove(namespace, "port-0") })
	p := alone(like("bare-0", "plain", "bare"))
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	g.place("bare", p)
}

// arguments has the plugins go by other arguments than the shipped ones.
func arguments(g *goldenRun) {
	c := decode(g.T, "base/scheduler-config.yaml")
	p := &c.Profiles[0]
	tree := args[config.SpreadTreeArgs](g.T, p)
	tree.CountRevisions, tree.ScaleDown, tree.DecisionRecord = config.CountAll, config.ScaleDownAny, config.DecisionRecordDisabled
	binder := args[config.RecordingBinderArgs](g.T, p)
	binder.Candidates, binder.ScheduledEvents = 1, config.ScheduledEventsSampled
	args[config.HostPortsArgs](g.T, p).Reserved = []string{"8080/tcp"}
	args[config.PreferencesArgs](g.T, p).DefaultLevels = nil
	args[config.DomainLimitsArgs](g.T, p).DefaultLimits = []config.DomainLimit{{TopologyKey: corev1.LabelHostname, MaxPods: 1}}
	faults := args[config.FaultyNodeArgs](g.T, p)
	faults.Threshold, faults.HalfOpen, faults.OwnErrors = 1, false, config.OwnErrorsCount
	g.start(c, nil)
	g.small(4, func(i int, n *corev1.Node) {
		if i == 3 {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ReservedHostPortsAnnotation, "10.0.0.1:9090/tcp")
			delete(n.Labels, rack)
		}
	})
	g.place("a host port that all nodes hold", like("port-0", "port", "port"))
	g.place("a host port that no node holds", like("port-1", "other port", "port"))
	for _, revision := range []string{"1", "2"} {
		set := g.ofSet("web", revision)
		for i := range 3 {
			g.place("of Deployment web, of which all revisions count alike", podOf(fmt.Sprintf("web-%s-%d", revision, i), "plain", "web", shipped, set))
		}
	}
	g.step("pod web-2-0 crashes once, which is enough", func() { g.crash("web-2-0", 1) })
	g.place("of a revision that a node is faulty for", podOf("web-2-3", "plain", "web", shipped, replicaSet("web", "web-2", "2")))
	for i := range 4 {
		g.place("under the limits of the profile", like(fmt.Sprint("one-", i), "plain", "one"))
	}
	g.place("one more than the limits of the profile allow", like("one-4", "plain", "one"))
	g.place("a host port that the node holds at one of its addresses", like("port-2", "plain", "held", on(corev1.LabelHostname, nodeName(3)), func(p *st.PodWrapper) { p.HostPort(9090) }))
	g.place("constraints on a name", like("named-0", "plain", "named", annotated(clusterview.ConstraintsAnnotation, "node.name=="+nodeName(2))))
	g.place("of DaemonSet agent, whose node its levels leave out",
		owned(like("agent-0", "plain", "agent", pinned(nodeName(3)), annotated(clusterview.PlacementAnnotation, "spread=rack;nodesWithoutKey=Exclude")), "apps/v1", "DaemonSet", "agent"))
	g.place("with a record that somebody else has written", like("record-0", "plain", "record", annotated(clusterview.DecisionAnnotation, "mine"), annotated(clusterview.LeaseExpiryAnnotation, "now")))
	g.place("with annotations that have no room for its record", like("large-0", "plain", "large", annotated("note", strings.Repeat("x", 256<<10-len("note")))))
}

// sampled has pods on the full path be decided about by some of the nodes.
func sampled(g *goldenRun) {
	c := decode(g.T, "base/scheduler-config.yaml")
	p := &c.Profiles[0]
	p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, schedulerapi.Plugin{Name: nodesampling.Name})
	p.PluginConfig = append(p.PluginConfig, schedulerapi.PluginConfig{Name: nodesampling.Name, Args: &config.NodeSamplingArgs{
		TopologyKey: zone, GroupsBasisPoints: 10000, NodesBasisPoints: 2500, Strategy: config.SamplingRoundRobin, TimeoutMilliseconds: 100,
	}})
	g.start(c, nil)
	g.small(12, nothing)
	prefers := func(p *st.PodWrapper) {
		p.PodAffinity(zone, alike(p), st.PodAffinityWithPreferredReq)
		ordered(p)
	}
	for i := range 5 {
		g.place("decided about by a sample, with a preference", like(fmt.Sprint("sample-", i), "spread", "sample", prefers))
	}
	g.place("decided about by a sample, of the nodes of one rack", like("sample-5", "spread", "sample", prefers, on(rack, "4")))
	g.place("that fits nowhere, with a preference", like("sample-6", "spread", "sample", prefers, cpu("100", 0)))
	g.place("that has a hint, and needs no sample", like("hint-0", "spread", "hint"))
}

// activeActive has another replica place the pods of some workloads, until it is gone.
func activeActive(g *goldenRun) {
	c := decode(g.T, "base/scheduler-config.yaml")
	owner := &sharing{members: []string{thisReplica, otherReplica}}
	c.Profiles[0].Plugins.PreEnqueue.Enabled = append(c.Profiles[0].Plugins.PreEnqueue.Enabled, schedulerapi.Plugin{Name: owner.Name()})
	g.start(c, owner)
	g.small(6, nothing)
	for i := range 8 {
		g.keep("of a workload of one of two replicas", like(fmt.Sprintf("shared-%d", i), "spread", fmt.Sprint("shared-", i/2)))
	}
	// It becomes another's when it has been let in, and before it is taken up.
	own := like("moved-0", "spread", "moved-0")
	for i := 0; !owner.Owns(own); i++ {
		own = like(fmt.Sprint("moved-", i), "spread", fmt.Sprint("moved-", i))
	}
	g.held("a pod becomes the other replica's while it is in the queue", func() {
		g.add(own)
		synctest.Wait()
		owner.set(otherReplica)
	})
	g.step("the other replica is gone", func() { owner.set(thisReplica)() })
}

// unread has policies, events and the record of failures not be readable for some time.
func unread(g *goldenRun) {
	g.server.away.Store(true)
	g.add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: shipped + "-failures"}, Data: map[string]string{"failures.json": "{"}})
	g.server.PrependReactor("list", "events", func(clientgotesting.Action) (bool, runtime.Object, error) {
		if g.server.away.Load() {
			return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no right"))
		}
		return false, nil, nil
	})
	g.start(decode(g.T, "base/scheduler-config.yaml"), nil)
	g.small(4, func(_ int, n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") })
	g.keep("that policies may govern, which are not known", like("waits-0", "spread", "waits"))
	g.place("of DaemonSet agent, which no policy governs", owned(like("agent-0", "plain", "agent", pinned(nodeName(1))), "apps/v1", "DaemonSet", "agent"))
	g.wait(10*time.Second, "nothing is read")
	g.gauges("whether policies can be read, while they cannot", "policies_unreadable")
	g.server.away.Store(false)
	g.wait(2*time.Minute, "policies are read")
	g.place("that no policy governs", like("waits-1", "spread", "waits"))
	g.gauges("whether policies can be read, when they can", "policies_unreadable")
}
