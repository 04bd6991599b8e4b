// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants is the controller that writes the statuses of Partitions and Allocations, and evicts pods that must not run: those
// beyond the maximum of their allocation, and those whose identity their group does not have any more.
//
// It computes the order as schedulers do, and has no say in it: schedulers read specs alone. Pods that make way for others are
// evicted by the scheduler, which knows whether those fit then.
//
//   - controller.go: looks every few seconds, and writes what differs
//   - status.go: the statuses; conditions.go: their conditions
//   - evict.go: pods that must not run
package tenants
