// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// other is a pod on a node that is of no workload.
func other(name, node string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).Node(node)
}

// amongAll has a pod be one more than on another node at most, of all pods of its namespace.
func amongAll(p *st.PodWrapper) *st.PodWrapper {
	return p.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, &metav1.LabelSelector{}, nil, nil, nil, nil)
}

// cordoned are two nodes with so many pods of no workload, of which the second takes none.
func cordoned(first, second []string) []runtime.Object {
	objects := heights(0, 0)
	objects[1].(*corev1.Node).Spec.Unschedulable = true
	for node, names := range map[string][]string{"n1": first, "n2": second} {
		for _, name := range names {
			objects = append(objects, other(name, node).Obj())
		}
	}
	return objects
}

// An empty selector selects all pods of the namespace, for a constraint that refuses nodes.
func TestEmptySelectorCountsAllPods(t *testing.T) {
	l := startLoop(t, 3, append(cordoned([]string{"a"}, nil), st.MakePod().Namespace("another").Name("b").UID("b").Node("n2").Obj())...)
	l.create(amongAll(webPod("p")))
	l.failed("p", 1)
	for _, e := range l.events() {
		if !strings.Contains(e, "1 node(s) didn't match pod topology spread constraints") {
			t.Errorf("it is said that %q", e)
		}
	}
	// Where the other node has one too, there is room beside the first.
	_, err := l.client.CoreV1().Pods("ns").Create(l.ctx, other("c", "n2").Obj(), metav1.CreateOptions{})
	l.must(err)
	if node := l.bound("p"); node != "n1" {
		t.Errorf("it is on %s", node)
	}
}

// As many pods make way as the constraint needs. With one left on each node there is room for one more.
func TestEmptySelectorInPreemption(t *testing.T) {
	l := newLoop(t, strings.Replace(loopConfiguration, ", {name: DefaultPreemption}", "", 1), func(*Options) {}, cordoned([]string{"a", "b"}, []string{"c"})...)
	l.start()
	l.create(amongAll(webPod("p").Priority(1)))
	if node := l.bound("p"); node != "n1" {
		t.Errorf("it is on %s", node)
	}
	pods, err := l.client.CoreV1().Pods("ns").List(l.ctx, metav1.ListOptions{})
	l.must(err)
	on := make(map[string]int)
	for i := range pods.Items {
		on[pods.Items[i].Spec.NodeName]++
	}
	if on["n1"] != 2 || on["n2"] != 1 {
		t.Errorf("there are so many pods on the nodes: %v, want the pod with one other, and one", on)
	}
}
