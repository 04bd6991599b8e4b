// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contention tells what becomes of nodes that several schedulers fill at once, without the controller's arbiter and with it.
//
// The control plane is a devcluster with nobody else: no kubelets and no controllers. Nodes stay as they are made, pods are made one by
// one, and the tests play what of a kubelet matters here: it removes pods that are terminating, and in some stories ends those that do
// not fit, as OutOfcpu. Stories run one after the other, because a scheduler has all nodes.
//
// It has a control plane of its own, because what is promised twice is read from an audit log, and the API server takes requests in turn.
//
//	make e2e-contention                     # all of them, with as many pods as docs/several-schedulers.md says
//	go test ./test/contention -short -v     # those that make test tells, with a fifth of the pods
package contention
