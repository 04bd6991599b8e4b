// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
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

// node is one of a platform; an empty part is a label that it lacks.
func node(name, os, arch string) *corev1.Node {
	n := st.MakeNode().Name(name)
	if os != "" {
		n.Label(corev1.LabelOSStable, os)
	}
	if arch != "" {
		n.Label(corev1.LabelArchStable, arch)
	}
	return n.Obj()
}

// The vectors of 2.7 on labels. The architecture of the first node is what a kubelet
// says of a machine that Docker calls x86_64.
func TestVector_2_7_Filter(t *testing.T) {
	nodes := []*corev1.Node{node("n1", "linux", "amd64"), node("n2", "windows", "amd64"), node("n3", "", "")}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want string
	}{
		{"2.7 amd64 and linux", asking("linux/amd64"), "n1"},
		{"2.7 arm and linux", asking("linux/arm"), ""},
		{"2.7 any architecture and linux", asking("linux"), "n1"},
		{"2.7 two platforms", asking("linux/amd64,windows/x86_64"), "n1 n2"},
		{"the spec's system", of(asking(""), corev1.Windows), "n2"},
		{"the spec's system and a list", of(asking("linux/amd64,windows/amd64"), corev1.Linux), "n1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var fit []string
			for _, n := range nodes {
				switch status := filter(t, tc.pod, n); {
				case status.IsSuccess():
					fit = append(fit, n.Name)
				case status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != platform.ErrReasonPlatform:
					t.Errorf("%s: %v", n.Name, status)
				}
			}
			if got := strings.Join(fit, " "); got != tc.want {
				t.Errorf("fits %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("2.7 no wish", func(t *testing.T) {
		if status := filter(t, asking(""), nil); status.Code() != fwk.Skip {
			t.Errorf("got %v", status)
		}
	})
}

// The whole of what a user reads, and not only some of it.
func TestMalformed(t *testing.T) {
	const want = `annotation espalier.dev/platforms: platform 2 "linux/arm/v7": third part "v7": a node does not tell its variant; use OS/ARCH`
	status := filter(t, asking("linux/amd64,linux/arm/v7"), nil)
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("got  %v %s\nwant %s", status.Code(), status.Message(), want)
	}
	if newPlugin(t).PreFilterExtensions() != nil {
		t.Error("there are extensions, for which pods that come and go would matter")
	}
}

func TestMessage(t *testing.T) {
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	for _, n := range []*corev1.Node{node("n1", "linux", "amd64"), node("n2", "windows", "amd64"), node("n3", "", "")} {
		diagnosis.NodeToStatus.Set(n.Name, filter(t, asking("linux/arm"), n))
	}
	err := framework.FitError{Pod: asking("").Obj(), NumAllNodes: 3, Diagnosis: diagnosis}
	const want = "0/3 nodes are available: 3 node(s) didn't match the pod's platform."
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
