// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroups has the scheduler's command place PodGroups of the Workload API, on a
// devcluster that serves it. The feature is off by default in Kubernetes: without a story
// that switches it on, nothing would show that a new release has changed it.
package podgroups
