// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordingbinder is the plugin that binds pods to nodes, as kube-scheduler's DefaultBinder does, and writes into
// the pod by what it was placed: who said over which levels, and the levels in their order. The API server copies the
// annotations of a binding to the pod, so that it is the same write, and needs no other right.
package recordingbinder
