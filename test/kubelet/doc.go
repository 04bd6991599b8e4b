// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet holds the stories that only real kubelets can tell: containers that
// run and fail, a runtime that is broken, an image that cannot be pulled, a port that
// is taken, a node that hangs. All others are in test/e2e.
//
// They are told on a cluster of kind, one after the other, because each breaks nodes
// that all share:
//
//	make e2e-kind                # makes the cluster, installs, tells the stories of both packages, deletes it
//	make e2e-kind RUN=Pull       # those with this in their name
//	make e2e-kind KEEP=1         # leaves the cluster
//
// A node is a container of the engine, by the same name, and docker exec is how it is broken.
package kubelet
