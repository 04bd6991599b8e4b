// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestHintAfterPodUpdate(t *testing.T) {
	empty := asking("").Annotation(clusterview.PlatformsAnnotation, "")
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"mended", asking("Linux"), asking("linux"), fwk.Queue},
		{"one more platform", asking("linux/arm64"), asking("linux/arm64,linux/amd64"), fwk.Queue},
		{"taken away", asking("Linux"), asking(""), fwk.Queue},
		{"empty and taken away", empty, asking(""), fwk.Queue},
		{"changed, still bad", asking("Linux"), asking("Windows"), fwk.QueueSkip},
		{"something else changed", asking("linux"), asking("linux").Label("a", "b").Annotation("c", "d"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), tc.before.Obj(), plugintest.PodUpdate(tc.before.Obj(), tc.after.Obj()), tc.want)
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, arm, amd := node("n", "", ""), node("n", "linux", "arm64"), node("n", "linux", "amd64")
	labelled := arm.DeepCopy()
	labelled.Labels["x"] = "y"
	for _, tc := range []struct {
		name          string
		annotation    string
		before, after *corev1.Node
		want          fwk.QueueingHint
	}{
		{"a node of the platform comes", "linux/arm64", nil, arm, fwk.Queue},
		{"a node of another comes", "linux/arm64", nil, amd, fwk.QueueSkip},
		{"a node that tells none comes", "linux/arm64", nil, bare, fwk.QueueSkip},
		{"a node tells its platform", "linux/arm64", bare, arm, fwk.Queue},
		{"a node tells another", "linux/arm64", bare, amd, fwk.QueueSkip},
		{"another label changes", "linux/arm64", arm, labelled, fwk.QueueSkip},
		{"a node tells its platform no more", "linux/arm64", arm, bare, fwk.QueueSkip},
		{"no node mends an annotation", "Linux", nil, arm, fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), asking(tc.annotation).Obj(), plugintest.NodeChange(fwk.UpdateNodeLabel, tc.before, tc.after), tc.want)
		})
	}
}
