// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration holds the scheduler's command to what it promises, against
// a real API server: what it says when it cannot start, which flags work beside
// each other, whose Lease it takes, what it serves, and that a restart loses nothing.
//
// Where pods go in all sorts of clusters is told by the stories of test/e2e.
//
// It shares its devcluster with test/install and test/kubectl, where ESPALIER_TEST_KUBECONFIG names one.
package integration
