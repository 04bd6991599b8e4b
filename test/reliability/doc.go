// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reliability takes away, in the middle of 1,000 pods, what placing them stands on:
// the scheduler that leads, its way to the API server, the API server, etcd.
//
// Each story has two replicas of bin/espalier-scheduler that elect a leader, with the rights
// of manifests/ and the shipped profile, on a devcluster that all stories share and that
// nobody else uses: they are told one after the other, because some of them stop all there is, and all count what the API server has answered.
// Every pod is to be bound once and never again, the spread to end even, and nothing to be lost.
//
//	make e2e-reliability                             # everything; prints the table of docs/reliability.md
//	go test ./test/reliability -short                # those that make test tells
//	go test ./test/reliability -run LeaderPaused -v        # one story
//	go test ./test/reliability -lease 4s             # with a shorter Lease than the shipped one
package reliability
