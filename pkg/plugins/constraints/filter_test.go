// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
)

func TestFilter(t *testing.T) {
	node := st.MakeNode().Name("n1").UID("4711").Label("disk", "ssd").Label(corev1.LabelHostname, "h1").Label(corev1.LabelArchStable, "amd64").Obj()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}}
	for _, tc := range []struct {
		annotation string
		want       fwk.Code
	}{
		{"node.id == 4711", fwk.Success},
		{"node.hostname == H1", fwk.Success},
		{"node.name == n1", fwk.Success},
		{"node.role == worker", fwk.Success},
		{"node.role == manager", fwk.UnschedulableAndUnresolvable},
		{"node.ip == 10.1.0.0/16", fwk.Success},
		{"node.platform.arch == x86_64", fwk.Success},
		{"node.platform.os == linux", fwk.UnschedulableAndUnresolvable},
		{"node.labels.disk == ssd, engine.labels.gpu == a100", fwk.UnschedulableAndUnresolvable},
		{"", fwk.Skip},
	} {
		t.Run(tc.annotation, func(t *testing.T) {
			status := plugintest.Filter(t, newPlugin(t), asking(tc.annotation).Obj(), node)
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
	plugintest.WantRefusal(t, plugintest.Filter(t, newPlugin(t), asking("node.role == worker, node.ip == 10.1.2").Obj(), nil), want)
	plugintest.WantNoExtensions(t, newPlugin(t))
}

func TestMessage(t *testing.T) {
	got := plugintest.Message(t, newPlugin(t), asking("node.labels.disk == ssd").Obj(),
		st.MakeNode().Name("n1").Obj(), st.MakeNode().Name("n2").Obj(), st.MakeNode().Name("n3").Obj())
	const want = "0/3 nodes are available: 3 node(s) didn't match the pod's constraints."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}
