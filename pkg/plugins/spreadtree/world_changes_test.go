// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// confirm is the watch that brings a pod with its node: while it is being bound, or after.
func (w *world) confirm(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached && p.assumed }); p != nil {
		w.must(w.cache.AddPod(w.logger, p.pod))
		p.assumed = false
		p.binding = rapid.Bool().Draw(w.t, "its answer is still out")
	}
}

func (w *world) bindingFails(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.binding }); p != nil {
		w.unproven(p.pod, -1)
		if rapid.IntRange(0, 3).Draw(w.t, "a pod comes in between") == 0 {
			w.schedule(w.t)
		}
		err := w.cache.ForgetPod(w.logger, p.pod)
		p.binding = false
		if p.assumed {
			w.must(err)
			p.cached = false
		}
	}
}

// deletePod is the watch that tells of a pod's end, be it bound or about to be.
func (w *world) deletePod(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached }); p != nil {
		if p.assumed {
			w.must(w.cache.RemoveAssumedPod(w.logger, p.pod))
		} else {
			w.must(w.cache.RemovePod(w.logger, p.pod))
		}
		p.cached, p.assumed = false, false
	}
}

func (w *world) terminatePod(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached && !p.assumed && p.pod.DeletionTimestamp == nil }); p != nil {
		ending := p.pod.DeepCopy()
		ending.DeletionTimestamp = new(metav1.Now())
		w.must(w.cache.UpdatePod(w.logger, p.pod, ending))
		p.pod = ending
	}
}

func (w *world) changeNode(*rapid.T) {
	if name, n := w.someNode(); n.here {
		next := w.drawNode(name).Obj()
		w.cache.UpdateNode(w.logger, n.node, next)
		n.node = next
	}
}

func (w *world) nodeComesOrGoes(*rapid.T) {
	name, n := w.someNode()
	if !n.here {
		w.appear(name)
		return
	}
	w.must(w.cache.RemoveNode(w.logger, n.node))
	n.here = false
}
