// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodefit says whether a node has room for one more pod, as its kubelet would when it is given the pod: by the
// arithmetic of kube-scheduler, which kubelets use as well. Overhead, init containers that go on running and resources of
// whole pods are its concern.
//
// What a kubelet does not ask is not asked here: whether the node is cordoned or tainted, for instance. And it is not asked where the
// pods of the scheduler's own cache would be: see allocated.go.
package nodefit
