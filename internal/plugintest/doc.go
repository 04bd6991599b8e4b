// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest asks one plugin what the scheduler would ask it, for the tests of
// all of them: what it says of a node, whether a change helps a pod that it refused,
// and whom it wakes. It knows no plugin and has no cases.
package plugintest
