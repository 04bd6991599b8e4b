// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream runs Kubernetes' own end-to-end specs of scheduling, with Espalier in the place of the default
// scheduler: limit ranges, predicates, priorities, preemption, zones, and gangs.
//
//	make e2e-upstream                    # all of them, about a quarter of an hour
//	make e2e-upstream RUN=Preemption     # those whose name matches
//
// The specs are those of k8s.io/kubernetes/test/e2e/scheduling, at the version that the product is linked with. They run
// on a devcluster: a real API server with its controllers, and nodes that are played.
//
//   - main_test.go: the cluster, the scheduler under the name default-scheduler, and what the specs want of a node that nobody else plays
//   - specs_test.go: the specs, and how far they are
//
// It is a module of its own: the specs bring what tests of Kubernetes need, which must not bend the versions
// of the product.
package upstream
