// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the arrows between the rooms of this repository as a
// test: who may import whom, which calls the pure core must not make, where the
// annotation keys are spelled, how long a file may grow, and which words are not used. Each rule gives its
// reason, and each has an example that breaks it, so that a rule which can no
// longer fail is found out.
//
//	standard library <- pkg/placement <- internal/clusterview <- internal/policies
//	                                         internal/refusal <- internal/policies
//	             internal/optionalkind <- internal/policies, internal/tenants
//	             internal/feasibility, internal/notices <- pkg/plugins/spreadtree
//	                 <- pkg/plugins/X <- pkg/plugins <- cmd, test
//	        internal/clusterview, internal/upstream/filters, nodefit <- internal/controllers <- cmd
//	                 internal/upstream, internal/scheduler/X <- cmd/scheduler
//	                   internal/informersync <- internal/scheduler/X, internal/inspect, cmd/controller
//	    internal/snapshot, internal/upstream/simulator <- internal/inspect <- cmd/kubectl-espalier
//
// The check reads import clauses and syntax only. It needs no other tool, sees
// files of every platform and build tag, and takes well under a second.
package archtest
