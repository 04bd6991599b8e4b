// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filters asks the filters of kube-scheduler where a pod could be, for who is no scheduler: the same code over a
// snapshot of nodes and pods.
//
// Volumes and resource claims are not looked at. Ask for no pod that has any.
package filters
