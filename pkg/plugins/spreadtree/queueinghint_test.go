// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

func TestHintAfterPodUpdate(t *testing.T) {
	r := newRig(t.Context(), t, args())
	events, err := r.pl.EventsToRegister(r.ctx)
	r.must(err)
	if len(events) != 1 || events[0].Event != (fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodLabel}) {
		t.Fatalf("registered are %v", events)
	}
	hint := events[0].QueueingHintFn
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"another workload", webPod("p", ""), webPod("p", "").Label(clusterview.WorkloadLabel, "db"), fwk.Queue},
		{"another revision", webPod("p", ""), webPod("p", "").Label("pod-template-hash", "3"), fwk.Queue},
		{"another label", webPod("p", ""), webPod("p", "").Label("x", "y"), fwk.QueueSkip},
		{"other levels", webPod("p", ""), webPod("p", "spread=zone"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := hint(r.logger, tc.after.Obj(), tc.before.Obj(), tc.after.Obj())
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if got, err := hint(r.logger, webPod("p", "").Obj(), nil, "no pod"); got != fwk.Queue || err == nil || !strings.Contains(err.Error(), Name) {
		t.Errorf("of an object that cannot be read: %v, %v", got, err)
	}
}
