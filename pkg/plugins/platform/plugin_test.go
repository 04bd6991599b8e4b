// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"context"
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
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	if annotation != "" {
		p.Annotation(clusterview.PlatformsAnnotation, annotation)
	}
	return p
}

// of gives a pod's spec an operating system.
func of(p *st.PodWrapper, os corev1.OSName) *st.PodWrapper {
	p.Spec.OS = &corev1.PodOS{Name: os}
	return p
}

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, "Platform", newPlugin(t), platform.New)
}

func TestSignPod(t *testing.T) {
	sign := func(pod *st.PodWrapper) any {
		t.Helper()
		fragments, status := newPlugin(t).SignPod(context.Background(), pod.Obj())
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("signed %v, %v", fragments, status)
		}
		return fragments[0]
	}
	plain, amd64 := sign(asking("")), sign(asking("linux/amd64"))
	if plain == amd64 || amd64 == sign(asking("linux/arm64")) || plain == sign(of(asking(""), corev1.Windows)) {
		t.Error("pods of other platforms are signed alike")
	}
	if amd64 != sign(asking(" linux/x86_64 ")) {
		t.Error("the same platform in other words is signed otherwise")
	}
	if fragments, status := newPlugin(t).SignPod(t.Context(), asking("Linux").Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that cannot be read is signed %v, %v", fragments, status)
	}
}
