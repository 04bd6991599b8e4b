// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package feasibility

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// The words of a preemption that helps nobody begin with the number of nodes, which the reasons do not tell where nodes have several.
func TestRefusalOfAsManyReasonsOnMoreNodes(t *testing.T) {
	nodes := tree.NewNodes(0)
	f := NewClass(nodes, new(corev1.Pod))
	refused := fwk.NewStatus(fwk.Unschedulable, "refused")
	full := func(reasons ...string) *fwk.Status {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons...).WithPlugin("Fit")
	}
	refuse := func(name string, reasons ...string) {
		id := nodes.Set(name, tree.Facts{})
		f.Refresh()
		f.Refuse(id, f.reason(full(reasons...)))
	}
	pod := new(corev1.Pod)
	refuse("a", "no CPU", "no memory")
	refuse("b", "no CPU", "no memory")
	is := f.Refusal(pod, 0)
	is.Learn(refused)
	if again := f.Refusal(pod, 0); again.Message != "2 no CPU, 2 no memory" || again.Preemption != refused {
		t.Errorf("got %+v", again)
	}
	never := &corev1.Pod{Spec: corev1.PodSpec{PreemptionPolicy: new(corev1.PreemptNever)}}
	f.Refusal(never, 0).Learn(full("never"))
	if again := f.Refusal(pod, 0); again.Preemption != refused || f.Refusal(never, 0).Preemption == refused {
		t.Error("a pod that never preempts and one that may are told the same")
	}
	refuse("a", "no CPU")
	refuse("c", "no memory")
	if other := f.Refusal(pod, 0); other.Message != "2 no CPU, 2 no memory" || other.Preemption != nil {
		t.Errorf("on three nodes: %+v", other)
	}
}
