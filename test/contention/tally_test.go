// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"fmt"
	"time"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// tally is how the nodes of a story were filled.
type tally struct {
	// bound is how many pods are on nodes, without those that were rejected.
	bound int
	// beyond is how many came to nodes that had no room, rejected or not.
	beyond int
	// unanswered is how many bindings were made though the arbiter had not answered within its second, or was not there.
	unanswered int
	// answered is how many pods are beyond, node by node, that are more than bindings to that node without an answer: the arbiter let them pass.
	answered int
}

// tally counts, and has the story fail if a pod was bound twice.
func (s *story) tally(k *kubelets) (t tally) {
	s.Helper()
	nodes, on, beyond := k.seen()
	without := make(map[string]int)
	for pod, unanswered := range s.bindings(nodes) {
		if unanswered {
			t.unanswered++
			without[nodes[pod]]++
		}
	}
	for node, n := range beyond {
		t.beyond += n
		t.answered += max(n-without[node], 0)
	}
	t.bound = on
	return t
}

// bindings are those of a story's pods, and whether they were made without an answer. It waits until the audit log has those of so many.
func (s *story) bindings(of map[string]string) (unanswered map[string]bool) {
	s.Helper()
	s.must(rig.Poll(s.ctx, timeout, 100*time.Millisecond, "the audit log to have all bindings", func() error {
		writes, err := rig.Writes(world.auditLog)
		if err != nil {
			return err
		}
		unanswered = make(map[string]bool)
		for i := range writes {
			w := &writes[i]
			if w.Object.Namespace != s.name || w.Object.Subresource != "binding" || !w.Done() {
				continue
			}
			if _, before := unanswered[w.Object.Name]; before {
				return rig.Never(fmt.Errorf("pod %s was bound twice", w.Object.Name))
			}
			unanswered[w.Object.Name] = w.Unanswered()
		}
		for pod := range of {
			if _, is := unanswered[pod]; !is {
				return fmt.Errorf("the binding of %s is not there", pod)
			}
		}
		return nil
	}))
	return unanswered
}
