// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claims says for which pods kube-scheduler's own scorers compare nodes by what the pods claim. Nodes that are equals to a spread tree are
// no equals to such a pod.
//
//   - devices.go: claims that list alternatives, which DynamicResources scores
//   - volumes.go: claims for which capacity is compared, which VolumeBinding scores
package claims
