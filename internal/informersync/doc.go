// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informersync says which informers of a process cannot be filled, and in whose words: those of the API server, which has no such
// kind, forbids it, or does not answer. An informer itself waits in silence, and so does whoever waits for it.
//
// It reads what the informers ask the API server and what they are answered, below the client. Handlers of watch errors were rejected: they
// must be set on each informer before it starts, a factory does not say which informers it has, and an API server that does not answer is no error.
//
//   - tracker.go: what is known of each kind
//   - request.go: which requests are those of informers
//   - transport.go: what is learned from a request and its answer
//   - standin.go: kinds that some pods only need, and that a scheduler goes on without
//   - rights.go: rights that are taken away from a watch that goes on
//   - report.go: the log, the readiness check and the metric
package informersync
