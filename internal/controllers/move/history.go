// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"strconv"
	"strings"
	"time"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// History is the Moves of one pod that are still there.
type History struct {
	// N is how many there are, and next the number of one more: those before may be gone, and no two may have the same.
	N, next int
	// Active says that one has not ended.
	Active bool
	// failed and undone are when the last one ended so. Vain is when the last one was undone that came to nothing: the pod of a Disconnect that is
	// handed back is back, and as it was meant to be.
	failed, undone, vain time.Time
}

// Histories are those of all pods that have been moved, by their UIDs.
func Histories(moves []placementv1alpha1.Move) map[string]History {
	all := make(map[string]History)
	for i := range moves {
		m := &moves[i]
		h := all[m.Spec.Pod.UID]
		h.N++
		h.next = max(h.next, numberOf(m)+1)
		h.Active = h.Active || !m.Status.Phase.Ended()
		if at := m.Status.EndedAt; at != nil {
			if m.Status.Phase == placementv1alpha1.MoveFailed {
				h.failed = later(h.failed, at.Time)
			} else {
				h.undone = later(h.undone, at.Time)
				if m.Spec.Reason != placementv1alpha1.MoveDisconnect {
					h.vain = later(h.vain, at.Time)
				}
			}
		}
		all[m.Spec.Pod.UID] = h
	}
	return all
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// numberOf is the number in the name that New gives a Move, 0 for the first one of a pod.
func numberOf(m *placementv1alpha1.Move) int {
	n, err := strconv.Atoi(strings.TrimPrefix(m.Name, firstName(&m.Spec)+"-"))
	if err != nil {
		return 0
	}
	return n
}

// Waits reports that a pod is not to be moved now: it is being moved, or a Move of it came to nothing within ten minutes, or it could not be moved
// within one, because its Deployment was at work.
func (h History) Waits(now time.Time) bool {
	return h.Fails(now) || now.Sub(h.vain) < 10*time.Minute
}

// FailingSince is since when a pod fails on its node: since it was handed back to it, if that was later.
func (h History) FailingSince(at time.Time) time.Time { return later(at, h.undone) }

// Fails reports that a pod is being moved, or could not be moved within a minute.
func (h History) Fails(now time.Time) bool { return h.Active || now.Sub(h.failed) < time.Minute }
