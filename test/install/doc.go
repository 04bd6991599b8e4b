// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install sees what an operator installs, by the chart or by kustomize,
// through the operator's own tools: that an API server takes every object, that the
// two ways agree, that every value does what its line in the README says, that two
// releases share nothing, that what is removed leaves nothing behind, and that a release
// consists of what it says.
//
// It needs the tools that are pinned in hack/tools/install and hack/tools/release, and a devcluster: one that it shares with test/integration and
// test/kubectl where ESPALIER_TEST_KUBECONFIG names it, or its own.
// No kubelet runs there: whether the images start is for clusters with real nodes.
package install
