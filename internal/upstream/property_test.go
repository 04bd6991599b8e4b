// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles how hard the properties are tried, unless flags say otherwise. The scheduler's cache and queue want metrics.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "300", "rapid.steps": "40"})
	metrics.Register()
	goleak.VerifyTestMain(m)
}

// world is a cluster over a rig, with whatever makes filters change their minds.
type world struct {
	*rig
	t     *rapid.T
	nodes map[string]*corev1.Node // nil: it is gone
	pods  map[string]*corev1.Pod  // with their nodes
	asked map[string]bool         // pods that are nominated for a node
	born  int
	// mortal: nodes end, and pods have leases.
	mortal bool
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		rig: newRig(t.Context(), t), t: t,
		nodes: make(map[string]*corev1.Node), pods: make(map[string]*corev1.Pod), asked: make(map[string]bool),
	}
	w.mortal = rapid.Bool().Draw(t, "nodes end")
	for i := range rapid.IntRange(2, 9).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		w.nodes[name] = w.drawNode(name)
		w.cache.AddNode(w.logger, w.nodes[name])
	}
	return w
}

func (w *world) one(label string, of ...string) string { return rapid.SampledFrom(of).Draw(w.t, label) }

// rarely is true one time in n.
func (w *world) rarely(n int, label string) bool { return rapid.IntRange(1, n).Draw(w.t, label) == n }

func (w *world) drawNode(name string) *corev1.Node {
	n := st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label("zone", w.one("zone", "a", "b", "c")).
		Label("rack", w.one("rack", "1", "2")).Label("disk", w.one("disk", "ssd", "hdd")).
		Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: w.one("room", "2", "4", "8"), corev1.ResourceCPU: "4"})
	if w.rarely(6, "tainted") {
		n.Taints([]corev1.Taint{{Key: "t", Effect: corev1.TaintEffect(w.one("effect", "NoSchedule", "PreferNoSchedule"))}})
	}
	if w.rarely(8, "unready") {
		n.Condition(corev1.NodeReady, corev1.ConditionFalse, "", "")
	}
	if w.rarely(3, "has the image") {
		n.Images(map[string]int64{w.one("image", "image:latest", "large:latest"): 1 << 30})
	}
	if end := w.one("ends", "", "0h", "1h", "2h", "5h", "odd"); w.mortal && end != "" {
		if after, err := time.ParseDuration(end); err == nil {
			end = w.clock.Now().Add(after).Format(time.RFC3339)
		}
		n.Annotation(clusterview.ValidUntilAnnotation, end)
	}
	return n.Unschedulable(w.rarely(8, "cordoned")).Obj()
}

// drawPod is a pod of one of two workloads: mostly alike, so that what was said of one is remembered for the next.
func (w *world) drawPod() *st.PodWrapper {
	w.born++
	name := fmt.Sprint("p", w.born)
	workload := w.one("workload", "w0", "w1")
	p := st.MakePod().Namespace("ns").Name(name).UID(name).Container(w.one("runs", "image", "image", "large")).
		Label(clusterview.WorkloadLabel, workload).Label("app", workload).Label("pod-template-hash", "1").
		Annotation(clusterview.PlacementAnnotation, "spread=zone,spread=rack").Priority(int32(rapid.IntRange(0, 1).Draw(w.t, "priority")))
	if lease := w.one("lease", "", "90m", "3h"); w.mortal && lease != "" {
		p.Annotation(clusterview.LeaseAnnotation, lease)
	}
	if !w.rarely(3, "exotic") {
		return p
	}
	w.drawOddity(p)
	return p
}

func (w *world) drawOddity(p *st.PodWrapper) {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Obj().Labels["app"]}}
	switch w.one("oddity", "selector", "toleration", "cpu", "anti", "with", "hard", "limit", "port", "constraint", "excluded", "daemon", "pinned", "prefers", "nominated") {
	case "selector":
		p.NodeSelector(map[string]string{"disk": "ssd"})
	case "toleration":
		p.Toleration("t")
	case "cpu":
		p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "3"})
	case "anti":
		p.PodAntiAffinity(w.one("key", corev1.LabelHostname, "rack"), app, st.PodAntiAffinityWithRequiredReq)
	case "with":
		p.PodAffinity("zone", app, st.PodAffinityWithRequiredReq)
	case "hard":
		p.SpreadConstraint(1, "zone", corev1.DoNotSchedule, app, nil, nil, nil, nil)
	case "limit":
		p.Annotation(clusterview.DomainLimitsAnnotation, w.one("limits", "rack=2", "zone=3,"+corev1.LabelHostname+"=1"))
	case "port":
		p.HostPort(80)
	case "constraint":
		p.Annotation(clusterview.ConstraintsAnnotation, "node.labels.disk==hdd")
	case "excluded":
		p.Annotation(clusterview.PlacementAnnotation, "spread=nothing;nodesWithoutKey=Exclude")
	case "daemon":
		p.OwnerReference("ds", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"})
	case "pinned":
		p.NodeAffinityIn(metav1.ObjectNameField, []string{"n1"}, st.NodeSelectorTypeMatchFields)
	case "prefers":
		p.PodAffinity("zone", app, st.PodAffinityWithPreferredReq)
	case "nominated":
		p.NominatedNodeName("n0")
	}
}

// schedule decides a new pod both ways.
func (w *world) schedule(*rapid.T) {
	pod := w.drawPod().Obj()
	node, state, refused := w.propose(pod)
	fit, best := w.best(pod)
	if node != "" && !slices.Equal(best, []string{node}) {
		w.t.Fatalf("%s is proposed for %s, the best is %q of %q that fit", node, pod.Name, best, fit)
	}
	outcome := proposed(state).outcome
	want := len(fit) > 0 && (outcome == outcomeProposed || outcome == outcomeNone)
	if want != (node != "") {
		w.t.Fatalf("%q is proposed for %s, %q fit", node, pod.Name, fit)
	}
	if len(fit) == 0 {
		w.refuse(pod, state, refused)
		return
	}
	if node == "" {
		node = fit[0]
		if len(best) > 0 {
			node = best[0]
		}
	}
	w.pods[pod.Name] = w.assume(pod, state, node)
}

// refuse holds what a pod that fits nowhere is told to what the judge's full path says. Where
// a pod of lower priority might have to go, preemption is for other tests.
func (w *world) refuse(pod *corev1.Pod, state *framework.CycleState, refused *framework.Diagnosis) {
	all, err := w.snapshot.NodeInfos().List()
	must(w, err)
	for _, n := range all {
		for _, p := range n.GetPods() {
			if corev1helpers.PodPriority(p.GetPod()) < corev1helpers.PodPriority(pod) {
				if refused != nil && proposed(state).refusal != nil {
					w.t.Fatalf("%s is refused, and nobody has tried whether %s would go for it", pod.Name, p.GetPod().Name)
				}
				return
			}
		}
	}
	judged := framework.NewCycleState()
	result, status, _ := w.judge.RunPreFilterPlugins(w.ctx, judged, pod)
	if !status.IsSuccess() || !result.AllNodes() || pod.Status.NominatedNodeName != "" || len(all) == 0 {
		return
	}
	d := w.diagnosis(w.judge, judged, pod)
	is := refused
	if is == nil {
		is = w.diagnosis(w.wrapped, state, pod)
	}
	want, got := w.words(w.judge, judged, pod, d), w.words(w.wrapped, state, pod, is)
	if got != want || !is.UnschedulablePlugins.Equal(d.UnschedulablePlugins) {
		w.t.Fatalf("%s (refused at once: %t) is told\n%s (%v), not\n%s (%v)", pod.Name, refused != nil, got, is.UnschedulablePlugins, want, d.UnschedulablePlugins)
	}
}

func (w *world) confirmOrDelete(*rapid.T) {
	if len(w.pods) == 0 {
		return
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(w.t, "pod")
	must(w, w.cache.RemoveAssumedPod(w.logger, w.pods[name]))
	delete(w.pods, name)
}

func (w *world) someNode() (string, *corev1.Node) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(w.t, "node")
	return name, w.nodes[name]
}

func (w *world) changeNode(*rapid.T) {
	name, n := w.someNode()
	next := w.drawNode(name)
	switch {
	case n == nil:
		w.cache.AddNode(w.logger, next)
	case w.rarely(3, "goes"):
		must(w, w.cache.RemoveNode(w.logger, n))
		next = nil
	default:
		w.cache.UpdateNode(w.logger, n, next)
	}
	w.nodes[name] = next
}

// nominate is preemption that cleared a node for a pod.
func (w *world) nominate(*rapid.T) {
	name, _ := w.someNode()
	pod := st.MakePod().Namespace("ns").Name(fmt.Sprint("nominee-", name)).UID(fmt.Sprint("nominee-", name)).
		Priority(int32(rapid.IntRange(0, 1).Draw(w.t, "nominee's priority"))).HostPort(80).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).NominatedNodeName(name).Obj()
	if w.asked[pod.Name] {
		w.nominator.DeleteNominatedPodIfExists(pod)
		w.asked[pod.Name] = false
		return
	}
	info, err := framework.NewPodInfo(pod)
	must(w, err)
	nominating := &fwk.NominatingInfo{NominatedNodeName: name, NominatingMode: fwk.ModeOverride}
	// As it comes with the pod as often as not, nobody is told.
	w.nominator.AddNominatedPod(w.logger, info, nominating)
	w.asked[pod.Name] = true
}

// timePasses makes what was said of leases old, or the clock is put back.
func (w *world) timePasses(*rapid.T) {
	w.clock.SetTime(w.clock.Now().Add(time.Duration(rapid.IntRange(-60, 120).Draw(w.t, "minutes")) * time.Minute))
}

// TestPropertyTheHintIsTheBest goes through random lives of a cluster: the node that is
// proposed is the one that the full path would score best, and there is one whenever it would find one.
func TestPropertyTheHintIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"schedule": w.schedule, "schedule 2": w.schedule, "schedule 3": w.schedule, "schedule 4": w.schedule,
			"delete pod": w.confirmOrDelete, "change node": w.changeNode, "nominate": w.nominate, "time passes": w.timePasses,
		})
	})
}
