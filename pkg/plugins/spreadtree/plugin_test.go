// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// factoryHandle is what New asks for.
type factoryHandle struct{ fwk.Handle }

func (factoryHandle) SharedInformerFactory() informers.SharedInformerFactory { return factory }

func (factoryHandle) SharedDRAManager() fwk.SharedDRAManager { return nil }

func (factoryHandle) ProfileName() string { return "espalier" }

func (factoryHandle) EventRecorder() events.EventRecorderLogger { return nil }

func TestNew(t *testing.T) {
	for _, tc := range []struct {
		name string
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		{"defaults", args(), nil},
		{"args of another plugin", &config.PreferencesArgs{}, []string{Name, "*config.SpreadTreeArgs", "*config.PreferencesArgs"}},
		{"no args", nil, []string{Name, "<nil>"}},
		{"bad values", &config.SpreadTreeArgs{CountRevisions: "Some", NodeHint: "off"}, []string{Name, "countRevisions", `"Some"`, "nodeHint", `"off"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pl, err := New(t.Context(), tc.args, factoryHandle{})
			plugintest.WantNew(t, Name, pl, err, tc.want...)
		})
	}
}

// A pod of a workload that is still growing waits for no other.
func TestEveryPodIsLetIn(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, pod := range []*st.PodWrapper{webPod("p", ""), webPod("q", "sprd=zone"), webPod("r", "").PodGroupName("g")} {
		if s := r.pl.PreEnqueue(r.ctx, pod.Obj()); !s.IsSuccess() {
			t.Errorf("%s: %v", pod.Obj().Name, s)
		}
	}
}

// Equal signatures say that another pod of it gets the same scores.
func TestSignPod(t *testing.T) {
	r := newRig(t.Context(), t, args())
	if fragments, s := r.pl.SignPod(r.ctx, webPod("p", "spread=zone").Obj()); s.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that is spread is signed %v, %v", fragments, s)
	}
	if fragments, s := r.pl.SignPod(r.ctx, webPod("p", "spread=zone").OwnerReference("ds", daemonSet).Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod that is not spread is signed %v, %v", fragments, s)
	}
}
