// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is a cluster at one moment, with all that decides where pods go and as little else as can be: no Secret, of
// ConfigMaps the schedulers' records of failures alone, and of containers neither commands nor environments.
//
//   - snapshot.go: what a snapshot has
//   - read.go: reading one from an API server
//   - records.go: what schedulers have written down of failures
//   - trim.go: what is left out of objects
//   - file.go: writing one to a file, and reading it back
package snapshot
