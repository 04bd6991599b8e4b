// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// NodeFilter is a plugin that judges a node by its object, whatever pods it has.
type NodeFilter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// Filter leads a pod through the plugin on one node. It returns what is said of the
// node, or of the pod if it does not come so far.
func Filter(t testing.TB, pl NodeFilter, pod *corev1.Pod, node *corev1.Node) *fwk.Status {
	t.Helper()
	status, each := FilterEach(t, pl, pod, node)
	if !status.IsSuccess() {
		return status
	}
	return each[0]
}

// FilterEach leads a pod through the plugin on nodes. It returns what is said of the
// pod, and unless that ends its way also of each node.
func FilterEach(t testing.TB, pl NodeFilter, pod *corev1.Pod, nodes ...*corev1.Node) (*fwk.Status, []*fwk.Status) {
	t.Helper()
	cycle := framework.NewCycleState()
	result, status := pl.PreFilter(t.Context(), cycle, pod, nil)
	if result != nil {
		t.Errorf("PreFilter names nodes: %v", result)
	}
	if !status.IsSuccess() {
		return status, nil
	}
	var each []*fwk.Status
	for _, n := range nodes {
		each = append(each, pl.Filter(t.Context(), cycle.Clone(), pod, info(n)))
	}
	return status, each
}

func info(node *corev1.Node) fwk.NodeInfo {
	n := framework.NewNodeInfo()
	n.SetNode(node)
	return n
}

// Message is all that a user reads of a pod that fits no node; "" if it fits one. Each
// refusal must be one that no end of a pod would change (UnschedulableAndUnresolvable).
func Message(t testing.TB, pl NodeFilter, pod *corev1.Pod, nodes ...*corev1.Node) string {
	t.Helper()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	_, each := FilterEach(t, pl, pod, nodes...)
	fit := 0
	for i, status := range each {
		switch status.Code() {
		case fwk.Success:
			fit++
		case fwk.UnschedulableAndUnresolvable:
			diagnosis.NodeToStatus.Set(nodes[i].Name, status)
		default:
			t.Errorf("%s: %v", nodes[i].Name, status)
		}
	}
	if len(nodes) == 0 || fit > 0 {
		return ""
	}
	return (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}).Error()
}

// WantRefusal fails the test unless that is the whole of what a user reads of a pod
// which no node can help.
func WantRefusal(t testing.TB, status *fwk.Status, want string) {
	t.Helper()
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("got  %v %s\nwant %s", status.Code(), status.Message(), want)
	}
}

// WantErrorWithoutPreFilter fails the test unless a profile that enables Filter without
// PreFilter is told so, and no pod is placed.
func WantErrorWithoutPreFilter(t testing.TB, pl fwk.FilterPlugin, pod *corev1.Pod) {
	t.Helper()
	status := pl.Filter(t.Context(), framework.NewCycleState(), pod, info(st.MakeNode().Name("n").Obj()))
	if status.Code() != fwk.Error || !strings.Contains(status.Message(), "PreFilter") || strings.Contains(status.Message(), "%!") {
		t.Errorf("got %v", status)
	}
}

// WantNoExtensions fails the test if pods that come and go would matter to the plugin.
func WantNoExtensions(t testing.TB, pl fwk.PreFilterPlugin) {
	t.Helper()
	if pl.PreFilterExtensions() != nil {
		t.Error("there are extensions, for which pods that come and go would matter")
	}
}
