// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import "testing"

// The API server dies and comes back: some bindings were made whose answer nobody got.
func TestAPIServerRestarts(t *testing.T) {
	begin(t).survives("kube-apiserver", "the API server restarts")
}

// etcd dies and comes back: the API server is there and can store nothing.
func TestEtcdRestarts(t *testing.T) { begin(t).survives("etcd", "etcd restarts") }

// survives restarts a part of the control plane in the middle.
func (s *story) survives(part, what string) {
	s.Helper()
	leader, _, _ := s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.must(world.Restart(part, patience), "restarting "+part)
	s.allBound(what)
	// Were no binding under way, nothing would have been told.
	s.says(leader, "Plugin Failed")
	// On a busy machine the part may have been away for longer than a leader may try to renew
	// its Lease. It ends then, and for no other reason.
	select {
	case <-leader.Done():
		s.exits(leader, 1)
		s.says(leader, "Leaderelection lost")
	default:
	}
}
