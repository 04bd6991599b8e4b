// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// refusalCase is a cluster, a pod that it has no place for, and what the pod is told.
type refusalCase struct {
	name    string
	objects []runtime.Object
	pod     *st.PodWrapper
	want    string
}

func (tc refusalCase) run(t *testing.T) {
	t.Run(tc.name, func(t *testing.T) {
		t.Parallel()
		start(t, tc.objects...).refused(tc.pod.Obj(), tc.want)
	})
}

// running is a pod on a node.
func running(name, node string) *st.PodWrapper { return pod(name).Node(node) }

func join(lists ...[]runtime.Object) []runtime.Object { return slices.Concat(lists...) }

// noVictims is what preemption adds when nodes could be cleared, and no pod is of lower priority.
func noVictims(nodes int) string {
	return fmt.Sprintf(" preemption: 0/%d nodes are available: %d No preemption victims found for incoming pod.", nodes, nodes)
}

// One case for each filter, as SwarmKit's order has them. What nodes have beyond the
// one defect tells that the filter before it has passed them.
func TestFilterRefuses(t *testing.T) {
	never := "0/3 nodes are available: 3 %s." + notHelpful(3)
	full := "0/3 nodes are available: 3 %s." + noVictims(3)
	for _, tc := range []refusalCase{
		{
			"NodeUnschedulable", nodes("n", 3, cordoned, tainted, room("0")), pod("p"),
			fmt.Sprintf(never, "node(s) were unschedulable"),
		},
		{
			"TaintToleration", nodes("n", 3, tainted, room("0")), pod("p"),
			fmt.Sprintf(never, "node(s) had untolerated taint(s)"),
		},
		{
			"NodeResourcesFit, more than nodes have", nodes("n", 3), pod("p").Req(map[corev1.ResourceName]string{"cpu": "5"}),
			fmt.Sprintf(never, "Insufficient cpu"),
		},
		{
			"NodeResourcesFit, more than is left", join(nodes("n", 1, room("1")), []runtime.Object{running("r", "n-0").Obj()}), pod("p"),
			"0/1 nodes are available: 1 Insufficient cpu." + noVictims(1),
		},
		{
			"NodeResourcesFit, of several resources", nodes("n", 3), pod("p").Req(map[corev1.ResourceName]string{"cpu": "5", "memory": "9Gi", "example.com/apple": "2"}),
			"0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient example.com/apple, 3 Insufficient memory." + notHelpful(3),
		},
		{
			"NodeResourcesFit, the number of pods",
			join(nodes("n", 1, func(n *st.NodeWrapper) { n.Capacity(map[corev1.ResourceName]string{"cpu": "4", "pods": "1"}) }), []runtime.Object{running("r", "n-0").Obj()}),
			pod("p"), "0/1 nodes are available: 1 Too many pods." + noVictims(1),
		},
		{
			"NodePlugins", nodes("n", 3, label("disk", "hdd")), withInlineVolume(pod("p").NodeSelector(map[string]string{"disk": "ssd"})),
			fmt.Sprintf(never, "node(s) didn't have a CSI driver that the pod's volumes need"),
		},
		{
			"NodeAffinity", nodes("n", 3), pod("p").NodeSelector(map[string]string{"disk": "ssd"}).Annotation(clusterview.ConstraintsAnnotation, "node.labels.a==b"),
			fmt.Sprintf(never, "node(s) didn't match Pod's node affinity/selector"),
		},
		{
			"Constraints", nodes("n", 3), pod("p").Annotation(clusterview.ConstraintsAnnotation, "node.labels.a==b").Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude"),
			fmt.Sprintf(never, "node(s) didn't match the pod's constraints"),
		},
		{
			"Preferences", nodes("n", 3), pod("p").Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude").Annotation(clusterview.PlatformsAnnotation, "windows/amd64"),
			fmt.Sprintf(never, "node(s) didn't have a property that the pod's placement requires"),
		},
		{
			"Platform", join(nodes("n", 1), []runtime.Object{running("r", "n-0").HostPort(80).Obj()}), pod("p").Annotation(clusterview.PlatformsAnnotation, "windows/amd64").HostPort(80),
			"0/1 nodes are available: 1 node(s) didn't match the pod's platform." + notHelpful(1),
		},
		{
			"HostPorts", join(nodes("n", 1), []runtime.Object{running("r", "n-0").HostPort(80).Obj()}), pod("p").HostPort(80).Annotation(clusterview.DomainLimitsAnnotation, "zone=1"),
			"0/1 nodes are available: 1 node(s) didn't have free host port 80/tcp." + noVictims(1),
		},
		{
			"DomainLimits", join(nodes("n", 3, label("zone", "a")), []runtime.Object{web(running("r", "n-0")).Obj()}),
			web(pod("p")).Annotation(clusterview.DomainLimitsAnnotation, "zone=1"),
			fmt.Sprintf(full, "node(s) were in a domain with as many of the workload's pods as its domain limits allow"),
		},
		{
			"PodTopologySpread", join(nodes("n", 2, label("zone", "a")), nodes("cordoned", 1, label("zone", "b"), cordoned), []runtime.Object{web(running("r", "n-0")).Obj()}),
			web(pod("p")).SpreadConstraint(1, "zone", corev1.DoNotSchedule, st.MakeLabelSelector().Label(clusterview.WorkloadLabel, "web").Obj(), nil, nil, nil, nil),
			"0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints." +
				" preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
		},
		{
			"PodTopologySpread, without the label", nodes("n", 3),
			web(pod("p")).SpreadConstraint(1, "zone", corev1.DoNotSchedule, st.MakeLabelSelector().Label(clusterview.WorkloadLabel, "web").Obj(), nil, nil, nil, nil),
			fmt.Sprintf(never, "node(s) didn't match pod topology spread constraints (missing required label)"),
		},
		{
			"InterPodAffinity", nodes("n", 3), pod("p").PodAffinityExists("db", "kubernetes.io/hostname", st.PodAffinityWithRequiredReq),
			fmt.Sprintf(never, "node(s) didn't match pod affinity rules"),
		},
		{
			"InterPodAffinity, anti", join(nodes("n", 1), []runtime.Object{running("r", "n-0").Label("db", "").Obj()}),
			pod("p").PodAntiAffinityExists("db", "kubernetes.io/hostname", st.PodAntiAffinityWithRequiredReq),
			"0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules." + noVictims(1),
		},
		{
			"InterPodAffinity, of another pod", join(nodes("n", 1), []runtime.Object{running("r", "n-0").PodAntiAffinityExists("db", "kubernetes.io/hostname", st.PodAntiAffinityWithRequiredReq).Obj()}),
			pod("p").Label("db", ""),
			"0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules." + noVictims(1),
		},
		{
			"NodeDeclaredFeatures", nodes("n", 3), restartingAll(pod("p")),
			fmt.Sprintf(never, "node(s) didn't match Pod's required features"),
		},
	} {
		tc.run(t)
	}
}

func web(p *st.PodWrapper) *st.PodWrapper { return p.Label(clusterview.WorkloadLabel, "web") }

// restartingAll asks for a feature of the kubelet that no node says it has.
func restartingAll(p *st.PodWrapper) *st.PodWrapper {
	p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	return p
}

func inClass(p *st.PodWrapper, name string) *st.PodWrapper {
	p.Spec.RuntimeClassName = &name
	return p
}

func withInlineVolume(p *st.PodWrapper) *st.PodWrapper {
	return p.Volume(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}})
}

// What a pod asks for and nobody can read, or nobody has, is told before any node is asked.
func TestPreFilterRefuses(t *testing.T) {
	for _, tc := range []refusalCase{
		{
			"Preferences", nodes("n", 3), pod("p").Annotation(clusterview.PlacementAnnotation, "spread=zone,sprad=rack"),
			"0/3 nodes are available: annotation espalier.dev/placement: " +
				`level 2 "sprad=rack": unknown strategy "sprad": use spread=PROPERTY or pack=PROPERTY.` + notHelpful(3),
		},
		{
			"NodePlugins", nodes("n", 3), inClass(pod("p"), "gvisor"),
			`0/3 nodes are available: runtimeClassName "gvisor": runtimeclass.node.k8s.io "gvisor" not found: create the RuntimeClass, or the pod anew without it.` + notHelpful(3),
		},
		{
			"NodeAffinity, names that contradict each other", nodes("n", 3), pinnedTo(pod("p"), "n-0", "n-1"),
			"0/3 nodes are available: pod affinity terms conflict." + notHelpful(3),
		},
		{
			"VolumeBinding, no such claim", nodes("n", 3), pod("p").PVC("data"),
			`0/3 nodes are available: persistentvolumeclaim "data" not found.` + notHelpful(3),
		},
	} {
		tc.run(t)
	}
}

// pinnedTo gives a pod an affinity for a node by name; with several, none fits.
func pinnedTo(p *st.PodWrapper, names ...string) *st.PodWrapper {
	var fields []corev1.NodeSelectorRequirement
	for _, name := range names {
		fields = append(fields, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}})
	}
	return p.NodeAffinity(&corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: fields}},
	}})
}
