// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge says what measured runs are worth: how many pods lie in the wrong
// place, what the schedulers' figures are beside each other, and whether what is
// promised holds. It is pure; the figures are measured elsewhere.
//
//	runs ──► Summarize: medians, ratios ──► Judge: promises ──► Report ──► table, JSON
package judge
