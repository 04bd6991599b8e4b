// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// driver is that of all volumes here.
const driver = "csi.example.com"

// nodes makes n nodes with room for ten pods and four processors, changed as told.
func nodes(name string, n int, change ...func(*st.NodeWrapper)) []runtime.Object {
	var list []runtime.Object
	for i := range n {
		node := st.MakeNode().Name(fmt.Sprintf("%s-%d", name, i)).Label(corev1.LabelHostname, fmt.Sprintf("%s-%d", name, i)).
			Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"})
		for _, c := range change {
			c(node)
		}
		list = append(list, node.Obj())
	}
	return list
}

func join(lists ...[]runtime.Object) []runtime.Object { return slices.Concat(lists...) }

func label(key, value string) func(*st.NodeWrapper) {
	return func(n *st.NodeWrapper) { n.Label(key, value) }
}

func cordoned(n *st.NodeWrapper) { n.Unschedulable(true) }

func tainted(n *st.NodeWrapper) {
	n.Taints([]corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}})
}

// room makes a node that has room for so many processors.
func room(cpu string) func(*st.NodeWrapper) {
	return func(n *st.NodeWrapper) {
		n.Capacity(map[corev1.ResourceName]string{"cpu": cpu, "memory": "8Gi", "pods": "10"})
	}
}

// pod asks for one processor.
func pod(name string) *st.PodWrapper {
	return st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName(schedulerName).
		Req(map[corev1.ResourceName]string{"cpu": "1"})
}

// running is a pod on the node n-0.
func running(change func(*st.PodWrapper)) []runtime.Object {
	p := pod("r").Node("n-0")
	change(p)
	return []runtime.Object{p.Obj()}
}

func web(p *st.PodWrapper) *st.PodWrapper { return p.Label(clusterview.WorkloadLabel, "web") }

// spreadHard has pods of web differ by no more than one between zones.
func spreadHard(p *st.PodWrapper) *st.PodWrapper {
	return web(p).SpreadConstraint(1, "zone", corev1.DoNotSchedule, st.MakeLabelSelector().Label(clusterview.WorkloadLabel, "web").Obj(), nil, nil, nil, nil)
}

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
	return p.Volume(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}})
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

// unbound is a claim named data whose volume is to be there before the pod is placed, and its class.
func unbound() []runtime.Object {
	class := "class"
	return []runtime.Object{
		st.MakeStorageClass().Name(class).VolumeBindingMode(storagev1.VolumeBindingImmediate).Provisioner(driver).Obj(),
		st.MakePersistentVolumeClaim().Namespace(namespace).Name("data").StorageClassName(&class).
			Resources(corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}).Obj(),
	}
}
