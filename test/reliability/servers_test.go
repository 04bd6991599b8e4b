// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// missed is how long nothing is bound at least while a part is away, many times what lies
// between two bindings otherwise.
const missed = 500 * time.Millisecond

// The API server dies and comes back: some bindings were made whose answer nobody got.
func TestAPIServerRestarts(t *testing.T) {
	s := begin(t)
	leader := s.survives("kube-apiserver", "the API server restarts")
	// Who asks for a binding while nobody answers is told so at once.
	s.says(leader, "Plugin Failed")
}

// etcd dies and comes back: the API server is there and can store nothing. It asks again for
// seconds, so that bindings come late and need not fail.
func TestEtcdRestarts(t *testing.T) { begin(t).survives("etcd", "etcd restarts") }

// survives restarts a part of the control plane in the middle, and returns who led then.
func (s *story) survives(part, what string) (leader *rig.Process) {
	s.Helper()
	leader, _, _ = s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.must(world.Restart(part, timeout), "restarting "+part)
	if gap := s.allBound(what); gap < missed {
		s.Errorf("the longest time without a binding was %s, less than %s: %s was not missed, and this told nothing", gap, missed, part)
	}
	// On a busy machine the part may have been away for longer than a leader may try to renew
	// its Lease. It ends then, and for no other reason.
	select {
	case <-leader.Done():
		s.exits(leader, 1)
		s.says(leader, "Leaderelection lost")
	default:
	}
	return leader
}
