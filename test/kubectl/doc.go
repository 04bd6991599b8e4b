// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs bin/kubectl-espalier as its users do, before a devcluster of three zones of two racks of two nodes on which the
// scheduler has placed pods.
//
//   - prints_test.go: every command, as text and as JSON, beside golden files; every pod that is bound
//   - flags_test.go: kubeconfig, context, namespace, what shells complete; what it says of bad input, and its status then
//   - large_test.go: time and memory in a large cluster, `make perf-kubectl`
//
// It shares its devcluster with test/integration and test/install, where ESPALIER_TEST_KUBECONFIG names one.
//
// `go test ./test/kubectl -update` writes the golden files.
package kubectl
