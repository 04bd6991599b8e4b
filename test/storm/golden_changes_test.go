// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// ready has pods that are bound be ready.
func (g *goldenRun) ready(names ...string) {
	g.Helper()
	for _, name := range names {
		g.changePod(name, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.Now())
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "con0", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		})
	}
}

// crash has a pod's container end in error and be started again, some times.
func (g *goldenRun) crash(name string, times int) {
	g.Helper()
	for i := range times {
		g.changePod(name, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "con0", RestartCount: int32(i + 1), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
			}}
		})
		time.Sleep(2 * apart)
	}
}

// failing places pods of workloads that fail on some nodes.
func (g *goldenRun) failing() {
	set := g.ofSet("crash", "1")
	crash := func(i int) string { return fmt.Sprint("crash-", i) }
	for i := range 6 {
		g.place("of a Deployment that is about to fail on a node", podOf(crash(i), "plain", "crash", shipped, set))
	}
	bad := g.pod(namespace, crash(2)).Spec.NodeName
	g.step("pod crash-2 crashes five times on "+bad+", and the others are ready", func() {
		g.ready(crash(0), crash(1), crash(3), crash(4), crash(5))
		g.crash(crash(2), 5)
	})
	g.step("pod crash-3 crashes once on "+g.pod(namespace, crash(3)).Spec.NodeName, func() { g.crash(crash(3), 1) })
	for i := range 3 {
		g.place("of a revision that a node is faulty for", podOf(crash(10+i), "plain", "crash", shipped, set))
	}
	faulty := like("crash-20", "plain", "crash", on(corev1.LabelHostname, bad))
	faulty.Labels, faulty.OwnerReferences = podOf("crash-20", "plain", "crash", shipped, set).Labels, podOf("crash-20", "plain", "crash", shipped, set).OwnerReferences
	g.place("of a revision that its only node is faulty for", faulty)
	weighed := &st.PodWrapper{Pod: *podOf("crash-21", "plain", "crash", shipped, set)}
	ordered(weighed)
	g.place("of a revision that a node is faulty for, with preferences", weighed.Obj())
	g.place("of the next revision, that no node is faulty for", podOf("crash-30", "plain", "crash", shipped, g.ofSet("crash", "2")))
	for i := range 4 {
		g.place("under a policy with two failures", like(fmt.Sprint("frail-", i), "plain", "frail"))
	}
	g.step("pod frail-1 crashes twice, and the others are ready", func() { g.ready("frail-0", "frail-2", "frail-3"); g.crash("frail-1", 2) })
	g.place("of a workload that a node is faulty for by its policy", like("frail-4", "plain", "frail"))
	// Errors that show on most nodes are the workload's own.
	for i := range 3 {
		g.place("of a workload whose errors are its own", like(fmt.Sprint("broken-", i), "plain", "broken"))
	}
	g.step("all pods of workload broken crash five times", func() {
		for i := range 3 {
			g.crash(fmt.Sprint("broken-", i), 5)
		}
	})
	g.place("of a workload whose errors are forgiven", like("broken-3", "plain", "broken"))
	// A node that many workloads fail on is suspect.
	for _, app := range []string{"a", "b", "c"} {
		for i, node := range []string{"n19", "n20"} {
			p := like(fmt.Sprintf("suspect-%s-%d", app, i), "plain", "suspect-"+app, on(corev1.LabelHostname, node))
			if app == "c" {
				p.Namespace = other // workloads of one namespace make no node suspect
			}
			g.place("of a workload that fails where others do", p)
		}
	}
	g.step("three workloads crash on n19, and are ready on n20", func() {
		for _, app := range []string{"suspect-a", "suspect-b", other + "/suspect-c"} {
			g.ready(app + "-1")
			g.crash(app+"-0", 5)
		}
		time.Sleep(15 * apart)
	})
	g.gauges("nodes that are faulty, and suspect", "faulty_nodes", "suspect_nodes")
	g.step("the kubelet refuses pod crash-10, and warns of crash-11", func() {
		g.changePod("crash-10", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.StartTime = corev1.PodFailed, "OutOfcpu", new(metav1.Now())
		})
		p := g.pod(namespace, "crash-11")
		g.add(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "warning-1"}, Type: corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox",
			Source: corev1.EventSource{Component: "kubelet", Host: p.Spec.NodeName}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.Name, UID: p.UID},
		})
	})
	g.place("of a revision that other nodes have failed since", podOf("crash-13", "plain", "crash", shipped, set))
	g.node(bad, "its failures are forgiven", func(n *corev1.Node) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.FailuresForgivenAnnotation, time.Now().Format(time.RFC3339))
	})
	for i := range 2 {
		g.place("of a revision whose failures are forgiven", podOf(crash(14+i), "plain", "crash", shipped, set))
	}
	time.Sleep(5 * apart)
	g.write("what is written down of failures", func() []string {
		obj, err := g.server.store.Get(corev1.SchemeGroupVersion.WithResource("configmaps"), metav1.NamespaceSystem, shipped+"-failures")
		must(g, err)
		return strings.Split(strings.ReplaceAll(obj.(*corev1.ConfigMap).Data["failures.json"], `{"workload"`, "\n"+`{"workload"`), "\n")
	})
}

// changing has nodes and pods change, and pods that wait be tried again for it.
func (g *goldenRun) changing() {
	spread := 0
	next := func(after string) {
		g.place("after "+after, like(fmt.Sprint("after-", spread), "spread", "after"))
		spread++
	}
	next("nothing")
	g.node("n03", "is open again", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	next("a node is open again")
	g.node("n07", "is ready again", func(n *corev1.Node) { n.Status.Conditions[0].Status, n.Spec.Taints = corev1.ConditionTrue, nil })
	next("a node is ready again")
	g.node("n09", "is of zone b and rack 1", func(n *corev1.Node) { n.Labels[zone], n.Labels[rack] = "b", "1" })
	next("a node has another zone")
	g.step("node n04 and its pods are gone", func() {
		must(g, g.server.store.Delete(nodeResource, "", "n04"))
		for _, p := range g.server.allPods(g.T) {
			if p.Spec.NodeName == "n04" {
				g.remove(p.Namespace, p.Name)
			}
		}
	})
	next("a node is gone")
	g.step("node n04 is there again, as another one", func() {
		n := newNode(4, "n04-again")
		n.Labels[corev1.LabelTopologyZone] = "zone-" + n.Labels[zone]
		g.add(n)
	})
	next("a node has come back")
	g.node("n00", "has no room left", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") })
	next("a node is full")
	g.node("n00", "has room again", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("60") })
	g.node("n17", "ends within the hour, and n18 is not to be preferred", func(n *corev1.Node) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ValidUntilAnnotation, "2000-01-01T00:30:00Z")
	})
	next("a node is about to end")
	for i := range 2 {
		next(fmt.Sprint("nothing more, ", i))
	}
	// Pods that wait for a change.
	g.keep("waits for a disk", like("waits-disk", "plain", "waits", annotated(clusterview.ConstraintsAnnotation, "node.labels.disk==nvme")))
	g.node("n08", "has another disk", func(n *corev1.Node) { n.Labels["disk"] = "nvme" })
	g.keep("waits for an address", like("waits-address", "plain", "waits", annotated(clusterview.ConstraintsAnnotation, "node.ip==10.1.0.0/16")))
	g.node("n01", "has an address", func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}}
	})
	g.keep("waits for a platform", like("waits-platform", "plain", "waits", annotated(clusterview.PlatformsAnnotation, "linux/riscv64")))
	g.node("n22", "is of another platform", func(n *corev1.Node) { n.Labels[corev1.LabelArchStable] = "riscv64" })
	g.place("has a host port", like("port-8", "port", "waits", on(corev1.LabelHostname, "n20")))
	g.keep("waits for a host port", like("waits-port", "port", "waits", on(corev1.LabelHostname, "n20")))
	g.step("pod port-8 ends, which has the port", func() { g.remove(namespace, "port-8") })
	g.keep("waits for a limit", like("waits-limit", "plain", "limits", annotated(clusterview.DomainLimitsAnnotation, "zone=1,node.name=1")))
	g.step("pod limit-1 ends, which counts", func() { g.remove(namespace, "limit-1") })
	g.keep("waits for a runtime handler", func() *corev1.Pod {
		p := like("waits-handler", "plain", "waits")
		p.Spec.RuntimeClassName = new("virtual")
		return p
	}())
	g.node("n21", "has another runtime handler", func(n *corev1.Node) { n.Status.RuntimeHandlers[1].Name = "vm" })
	g.keep("waits for a CSI driver", func() *corev1.Pod {
		p := like("waits-driver", "plain", "waits")
		p.Spec.Volumes = []corev1.Volume{{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "none.example.com"}}}}
		return p
	}())
	g.step("node n02 has another CSI driver", func() {
		change(g, storagev1.SchemeGroupVersion.WithResource("csinodes"), "", "n02", func(n *storagev1.CSINode) {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: "none.example.com", NodeID: "n02"})
		})
	})
	g.keep("waits for a property that its levels need", like("waits-key", "plain", "waits", annotated(clusterview.PlacementAnnotation, "spread=shelf;nodesWithoutKey=Exclude")))
	g.node("n23", "is on a shelf", func(n *corev1.Node) { n.Labels["shelf"] = "top" })
	g.keep("waits for its annotation to be mended", like("waits-mended", "plain", "waits", annotated(clusterview.PlacementAnnotation, "stack=zone")))
	g.step("the annotation of pod waits-mended is mended", func() {
		g.changePod("waits-mended", func(p *corev1.Pod) { p.Annotations[clusterview.PlacementAnnotation] = "pack=zone" })
	})
	g.place("DoNotSchedule over all pods of the namespace, of which its node has more than others", like("hard4-0", "plain", "hard4", on(corev1.LabelHostname, "n01"), func(p *st.PodWrapper) {
		p.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, &metav1.LabelSelector{}, nil, new(corev1.NodeInclusionPolicyIgnore), nil, nil)
	}))
	g.keep("waits for a pod of a namespace with a label", like("waits-near", "plain", "near", func(p *st.PodWrapper) {
		p.Obj().Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "helper"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: other}}, TopologyKey: corev1.LabelHostname,
		}}}}
	}))
	g.step("a pod of the namespace runs on node n01", func() {
		g.add(st.MakePod().Namespace(other).Name("helper").UID("helper").Label("app", "helper").SchedulerName("another").Node("n01").Phase(corev1.PodRunning).Obj())
	})
	g.remove(other, "helper")
	g.remove(namespace, "waits-near")
	g.gauges("pods that would have to move", "misplaced_pods")
}

// idle places pods when nothing has happened for long: what was kept is evicted by then, and is counted anew.
func (g *goldenRun) idle() {
	g.wait(20*time.Minute, "nothing happens")
	for _, kind := range []string{"plain", "spread", "hard", "limited", "weighted"} {
		g.place("after a pause", like("late-"+kind, kind, "late-"+kind))
	}
	set := slices.Clone([]string{"web", "crash"})
	for _, app := range set {
		g.place("of Deployment "+app+", after a pause", podOf(app+"-late", "plain", app, shipped, replicaSet(app, app+"-2", "2")))
	}
}
