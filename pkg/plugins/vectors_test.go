// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// A pod that fits nowhere says why for each node once: SwarmKit's scenario of one
// node that is too small beside two that are not ready. Apples are an extended resource.
func TestVector_2_6_R1(t *testing.T) {
	node := func(name, memory, apples string) *st.NodeWrapper {
		return st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{
			corev1.ResourcePods: "10", corev1.ResourceMemory: memory, "example.com/apple": apples,
		})
	}
	// The node lifecycle controller gives a node that is not ready this taint.
	unready := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	nodes := []*corev1.Node{
		node("small", "1G", "1").Obj(),
		node("unready-1", "2G", "2").Taints(unready).Obj(),
		node("unready-2", "2G", "2").Taints(unready).Obj(),
	}
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").
		Req(map[corev1.ResourceName]string{corev1.ResourceMemory: "2G", "example.com/apple": "2"}).Obj()

	fit, message := fitting(t, pod, nodes)
	const want = "0/3 nodes are available: 1 Insufficient example.com/apple, 1 Insufficient memory, 2 node(s) had untolerated taint(s)."
	if len(fit) != 0 || message != want {
		t.Errorf("%q fit, and the message is\n%s\nwant\n%s", fit, message, want)
	}
	fit, _ = fitting(t, pod, append(nodes, node("large", "8G", "4").Obj()))
	if !slices.Equal(fit, []string{"large"}) {
		t.Errorf("%q fit beside a node that is large enough", fit)
	}
}

// fitting returns the nodes on which a pod fits, and the message it gets if there are none.
func fitting(t *testing.T, pod *corev1.Pod, nodes []*corev1.Node) (fit []string, message string) {
	t.Helper()
	snapshot := cache.NewSnapshot(nil, nodes)
	ctx, f := profile(t, snapshot)
	state := framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatalf("PreFilter: %v", status)
	}
	all, err := snapshot.List()
	if err != nil {
		t.Fatal(err)
	}
	statuses := framework.NewDefaultNodeToStatus()
	var passed []fwk.NodeInfo
	for _, n := range all {
		if status := f.RunFilterPlugins(ctx, state, pod, n); status.IsSuccess() {
			passed = append(passed, n)
		} else {
			statuses.Set(n.Node().Name, status)
		}
	}
	err = &framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{NodeToStatus: statuses}}
	return names(passed), err.Error()
}
