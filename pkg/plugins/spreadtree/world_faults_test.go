// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// What befalls a world in which faults are kept.

func (w *world) newState() *framework.CycleState {
	if !w.kept {
		return framework.NewCycleState()
	}
	return w.ledger.under()
}

func (w *world) rule() placement.Faults {
	if !w.kept {
		return placement.Faults{}
	}
	return w.ledger.rule
}

// keepFaults changes the rule, or whether the pods to come are told of faults at all.
func (w *world) keepFaults(*rapid.T) {
	w.kept = rapid.IntRange(0, 3).Draw(w.t, "kept") > 0
	w.ledger.rule = placement.Faults{Threshold: rapid.IntRange(1, 3).Draw(w.t, "threshold"), HalfOpen: rapid.Bool().Draw(w.t, "half-open")}
}

// fare changes how a revision has fared on a node, which need not be there.
func (w *world) fare(*rapid.T) {
	name, _ := w.someNode()
	w.ledger.write(where{
		workload: w.pl.identifier.Identify(w.anyWebPod()).Workload,
		revision: rapid.SampledFrom([]string{"1", "2"}).Draw(w.t, "revision"),
		node:     name,
	}, placement.Record{
		Failures:   rapid.IntRange(0, 3).Draw(w.t, "failures"),
		Unforgiven: rapid.IntRange(0, 3).Draw(w.t, "unforgiven"),
		Proven:     rapid.IntRange(0, 4).Draw(w.t, "proven") == 0,
		Unproven:   rapid.Int64Range(0, 2).Draw(w.t, "unproven"),
	})
}

func (w *world) anyWebPod() *corev1.Pod {
	workload := rapid.SampledFrom([]string{"w0", "w1"}).Draw(w.t, "workload")
	return webPod("p", "").Label(clusterview.WorkloadLabel, workload).Obj()
}

func (w *world) forgetParticulars(*rapid.T) { w.ledger.forget() }

// unproven is what the ledger hears of a pod that is placed, or could not be bound.
func (w *world) unproven(pod *corev1.Pod, by int64) {
	on := at(w.pl.identifier.Identify(pod), pod.Spec.NodeName)
	if r := w.ledger.records[on]; r != (placement.Record{}) && r.Unproven+by >= 0 {
		r.Unproven += by
		w.ledger.write(on, r)
	}
}
