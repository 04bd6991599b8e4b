// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
)

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
				switch status := plugintest.Filter(t, newPlugin(t), tc.pod.Obj(), n); {
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
		if status := plugintest.Filter(t, newPlugin(t), asking("").Obj(), nil); status.Code() != fwk.Skip {
			t.Errorf("got %v", status)
		}
	})
}

// The whole of what a user reads, and not only some of it.
func TestMalformed(t *testing.T) {
	const want = `annotation espalier.dev/platforms: platform 2 "linux/arm/v7": third part "v7": a node does not tell its variant; use OS/ARCH`
	plugintest.WantRefusal(t, plugintest.Filter(t, newPlugin(t), asking("linux/amd64,linux/arm/v7").Obj(), nil), want)
	plugintest.WantNoExtensions(t, newPlugin(t))
}

func TestMessage(t *testing.T) {
	got := plugintest.Message(t, newPlugin(t), asking("linux/arm").Obj(),
		node("n1", "linux", "amd64"), node("n2", "windows", "amd64"), node("n3", "", ""))
	const want = "0/3 nodes are available: 3 node(s) didn't match the pod's platform."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}
