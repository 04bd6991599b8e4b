// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
)

func newPlugin(t *testing.T) *platform.Platform {
	t.Helper()
	return plugintest.New[*platform.Platform](t, platform.New, nil, nil)
}

// asking is a pod with an annotation; "" is none.
func asking(annotation string) *st.PodWrapper {
	return plugintest.Asking(clusterview.PlatformsAnnotation, annotation)
}

// of gives a pod's spec an operating system.
func of(p *st.PodWrapper, os corev1.OSName) *st.PodWrapper {
	p.Spec.OS = &corev1.PodOS{Name: os}
	return p
}

func TestNew(t *testing.T) { plugintest.WantNoArguments(t, "Platform", newPlugin(t), platform.New) }

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(pod *st.PodWrapper) any { return plugintest.Sign(t, pl, pod) }
	plain, amd64 := sign(asking("")), sign(asking("linux/amd64"))
	if plain == amd64 || amd64 == sign(asking("linux/arm64")) || plain == sign(of(asking(""), corev1.Windows)) {
		t.Error("pods of other platforms are signed alike")
	}
	if amd64 != sign(asking(" linux/x86_64 ")) {
		t.Error("the same platform in other words is signed otherwise")
	}
	plugintest.WantUnsigned(t, pl, asking("Linux")) // it cannot be read
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

// The vectors of 2.7 on labels. The architecture of the first node is what a kubelet says of a machine that Docker calls x86_64.
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
	const empty = `annotation espalier.dev/platforms: no platforms in "": use OS/ARCH such as linux/amd64, OS alone for any architecture, or /ARCH for any operating system`
	plugintest.WantRefusal(t, plugintest.Filter(t, newPlugin(t), asking("").Annotation(clusterview.PlatformsAnnotation, "").Obj(), nil), empty)
	plugintest.WantNoExtensions(t, newPlugin(t))
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}

func TestHintAfterPodUpdate(t *testing.T) {
	empty := asking("").Annotation(clusterview.PlatformsAnnotation, "")
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterPodUpdate("mended", asking("Linux"), asking("linux"), fwk.Queue)
	hints.AfterPodUpdate("one more platform", asking("linux/arm64"), asking("linux/arm64,linux/amd64"), fwk.Queue)
	hints.AfterPodUpdate("taken away", asking("Linux"), asking(""), fwk.Queue)
	hints.AfterPodUpdate("empty and taken away", empty, asking(""), fwk.Queue)
	hints.AfterPodUpdate("changed, still bad", asking("Linux"), asking("Windows"), fwk.QueueSkip)
	hints.AfterPodUpdate("something else changed", asking("linux"), asking("linux").Label("a", "b").Annotation("c", "d"), fwk.QueueSkip)
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, arm, amd := node("n", "", ""), node("n", "linux", "arm64"), node("n", "linux", "amd64")
	labelled := arm.DeepCopy()
	labelled.Labels["x"] = "y"
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterNodeChange("a node of the platform comes", asking("linux/arm64"), fwk.UpdateNodeLabel, nil, arm, fwk.Queue)
	hints.AfterNodeChange("a node of another comes", asking("linux/arm64"), fwk.UpdateNodeLabel, nil, amd, fwk.QueueSkip)
	hints.AfterNodeChange("a node that tells none comes", asking("linux/arm64"), fwk.UpdateNodeLabel, nil, bare, fwk.QueueSkip)
	hints.AfterNodeChange("a node tells its platform", asking("linux/arm64"), fwk.UpdateNodeLabel, bare, arm, fwk.Queue)
	hints.AfterNodeChange("a node tells another", asking("linux/arm64"), fwk.UpdateNodeLabel, bare, amd, fwk.QueueSkip)
	hints.AfterNodeChange("another label changes", asking("linux/arm64"), fwk.UpdateNodeLabel, arm, labelled, fwk.QueueSkip)
	hints.AfterNodeChange("a node tells its platform no more", asking("linux/arm64"), fwk.UpdateNodeLabel, arm, bare, fwk.QueueSkip)
	hints.AfterNodeChange("no node mends an annotation", asking("Linux"), fwk.UpdateNodeLabel, nil, arm, fwk.QueueSkip)
}
