// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
)

// filter leads a pod through the plugin on one node.
func filter(t *testing.T, pod *st.PodWrapper, node *corev1.Node) *fwk.Status {
	t.Helper()
	pl, cycle := newPlugin(t), framework.NewCycleState()
	result, status := pl.PreFilter(t.Context(), cycle, pod.Obj(), nil)
	if result != nil {
		t.Errorf("PreFilter names nodes: %v", result)
	}
	if !status.IsSuccess() {
		return status
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return pl.Filter(t.Context(), cycle.Clone(), pod.Obj(), info)
}

func TestFilter(t *testing.T) {
	node := st.MakeNode().Name("n1").UID("4711").Label("disk", "ssd").Label(corev1.LabelHostname, "h1").Label(corev1.LabelArchStable, "amd64").Obj()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}}
	for _, tc := range []struct {
		annotation string
		want       fwk.Code
	}{
		{"node.id == 4711", fwk.Success},
		{"node.id == 4712", fwk.UnschedulableAndUnresolvable},
		{"node.hostname == H1", fwk.Success},
		{"node.name == n1", fwk.Success},
		{"node.role == worker", fwk.Success},
		{"node.role == manager", fwk.UnschedulableAndUnresolvable},
		{"node.ip == 10.1.0.0/16", fwk.Success},
		{"node.ip != 10.1.0.0/16", fwk.UnschedulableAndUnresolvable},
		{"node.platform.arch == x86_64", fwk.Success},
		{"node.platform.os == linux", fwk.UnschedulableAndUnresolvable},
		{"node.labels.disk == ssd, engine.labels.gpu != a100", fwk.Success},
		{"node.labels.disk == ssd, engine.labels.gpu == a100", fwk.UnschedulableAndUnresolvable},
		{"", fwk.Skip},
	} {
		t.Run(tc.annotation, func(t *testing.T) {
			status := filter(t, asking(tc.annotation), node)
			if status.Code() != tc.want || (tc.want == fwk.UnschedulableAndUnresolvable && status.Message() != constraints.ErrReasonConstraints) {
				t.Errorf("got %v, %q, want %v", status.Code(), status.Message(), tc.want)
			}
		})
	}
}

// The whole of what a user reads, and not only some of it.
func TestMalformed(t *testing.T) {
	const want = `annotation espalier.dev/constraints: constraint 2 "node.ip == 10.1.2": invalid address "10.1.2": ` +
		`use an address such as 10.1.2.3 or 2001:db8::2, or a range such as 10.1.0.0/16`
	status := filter(t, asking("node.role == worker, node.ip == 10.1.2"), nil)
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("got  %v %s\nwant %s", status.Code(), status.Message(), want)
	}
	if newPlugin(t).PreFilterExtensions() != nil {
		t.Error("there are extensions, for which pods that come and go would matter")
	}
}

func TestMessage(t *testing.T) {
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	for _, name := range []string{"n1", "n2", "n3"} {
		diagnosis.NodeToStatus.Set(name, filter(t, asking("node.labels.disk == ssd"), st.MakeNode().Name(name).Obj()))
	}
	err := framework.FitError{Pod: asking("").Obj(), NumAllNodes: 3, Diagnosis: diagnosis}
	const want = "0/3 nodes are available: 3 node(s) didn't match the pod's constraints."
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err.Error(), want)
	}
}

// A profile that enables Filter without PreFilter is told so, and no pod is placed.
func TestFilterWithoutPreFilter(t *testing.T) {
	info := framework.NewNodeInfo()
	info.SetNode(st.MakeNode().Name("n").Obj())
	status := newPlugin(t).Filter(t.Context(), framework.NewCycleState(), asking("").Obj(), info)
	if status.Code() != fwk.Error || !strings.Contains(status.Message(), "PreFilter") || strings.Contains(status.Message(), "%!") {
		t.Errorf("got %v", status)
	}
}
