// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// Sign is the one fragment by which the plugin signs a pod.
func Sign(t testing.TB, pl fwk.SignPlugin, pod *st.PodWrapper) any {
	t.Helper()
	fragments, status := pl.SignPod(t.Context(), pod.Obj())
	if !status.IsSuccess() || len(fragments) != 1 {
		t.Fatalf("signed %v, %v", fragments, status)
	}
	return fragments[0]
}

// WantUnsigned fails the test unless the plugin refuses to sign a pod.
func WantUnsigned(t testing.TB, pl fwk.SignPlugin, pod *st.PodWrapper) {
	t.Helper()
	if fragments, status := pl.SignPod(t.Context(), pod.Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that is not to be signed is signed %v, %v", fragments, status)
	}
}
