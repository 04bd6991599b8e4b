// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

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

func TestNoNodes(t *testing.T) {
	c := start(t)
	c.refused(pod("p").Obj(), "no nodes available to schedule pods")
}
