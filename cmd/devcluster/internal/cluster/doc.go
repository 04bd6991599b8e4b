// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane in this process from its real
// parts: etcd, kube-apiserver and the workload controllers, with kwok as a child that
// plays the nodes. There is no scheduler: that is what the cluster is for trying.
//
//	etcd (unix socket) <- kube-apiserver (127.0.0.1, a port of the kernel's choice)
//	                          ^            ^                ^
//	                     controllers   kwok (child)   whoever has the kubeconfig
//
// Parts start from left to right and end from right to left. A part that ends by
// itself ends the cluster: half a control plane only makes tests hang.
package cluster
