// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import "testing"

// The API server dies and comes back: some bindings were made whose answer nobody got.
func TestAPIServerRestarts(t *testing.T) {
	s := begin(t)
	s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.must(world.Restart("kube-apiserver", patience), "restarting the API server")
	s.allBound("the API server restarts")
}

// etcd dies and comes back: the API server is there and can store nothing.
func TestEtcdRestarts(t *testing.T) {
	s := begin(t)
	s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.must(world.Restart("etcd", patience), "restarting etcd")
	s.allBound("etcd restarts")
}
