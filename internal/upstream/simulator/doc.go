// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulator runs kube-scheduler with plugins over objects that it is given, without an API server: the same code decides,
// and nothing is written anywhere.
//
//   - objects.go: the objects, as a client lists them
//   - simulator.go: the scheduler, and its decisions
//
// What it places stays placed until its context ends. Nobody binds, evicts or fails pods.
package simulator
