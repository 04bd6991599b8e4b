// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// A runtime that restarts quickly reports another handler while its node stays ready, of
// which the framework has no event. The pod that is woken must fit at once, although
// the scheduler's cache may not have seen the change.
func TestRegression_NewHandlerOfAReadyNodeWakesNobody(t *testing.T) {
	waits, other := pod("kata"), pod("wasm")
	waits.Name, waits.UID, other.Name, other.UID = "waits", "waits", "other", "other"
	placed, plain := waits.DeepCopy(), pod("")
	placed.Name, placed.UID, placed.Spec.NodeName = "placed", "placed", "n"
	plain.Name, plain.UID = "plain", "plain"
	before, after := node("n", "runc"), node("n", "runc", "kata-qemu")
	pl, c := newCluster(t, before, waits, other, placed, plain, runtimeClass("kata", "kata-qemu"), runtimeClass("wasm", "spin"))
	c.WantWoken(t, pl, waits, before, after)
}

// A RuntimeClass comes back, or is made anew with another handler. The pod that waits for it is woken when the plugin sees the class, and not
// a moment before: it would be refused once more, and wait for minutes.
func TestRegression_RuntimeClassThatComesBack(t *testing.T) {
	waits, other := pod("kata"), pod("wasm")
	waits.Name, waits.UID, other.Name, other.UID = "waits", "waits", "other", "other"
	n := node("n", "runc", "kata-qemu")
	pl, c := newCluster(t, n, waits, other, runtimeClass("wasm", "spin"))
	for _, change := range []func(context.Context, kubernetes.Interface) error{
		func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.NodeV1().RuntimeClasses().Create(ctx, runtimeClass("kata", "kata-clh"), metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.NodeV1().RuntimeClasses().Update(ctx, runtimeClass("kata", "kata-qemu"), metav1.UpdateOptions{})
			return err
		},
	} {
		c.WantWokenBy(t, waits, change)
	}
	if status := plugintest.Filter(t, pl, waits, n); !status.IsSuccess() {
		t.Errorf("it is awake, and refused: %v", status)
	}
}
