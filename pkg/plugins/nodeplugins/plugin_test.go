// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
)

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, "NodePlugins", newPlugin(t), nodeplugins.New)
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(p *corev1.Pod) []fwk.SignFragment {
		t.Helper()
		fragments, status := pl.SignPod(t.Context(), p)
		if !status.IsSuccess() {
			t.Fatalf("not signed: %v", status)
		}
		return fragments
	}
	plain := sign(pod("", inline("a")))
	if !reflect.DeepEqual(plain, sign(pod("", inline("a")))) {
		t.Error("two pods that ask for the same are signed otherwise")
	}
	for name, other := range map[string]*corev1.Pod{
		"another driver": pod("", inline("b")), "a claim": pod("", claimed("a")), "no volume": pod(""), "a RuntimeClass": pod("kata", inline("a")),
	} {
		if reflect.DeepEqual(plain, sign(other)) {
			t.Errorf("a pod with %s is signed like one without", name)
		}
	}
}
