// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants is the controller that writes the statuses of Partitions and Allocations, says in Events why pods wait that were not tried, and
// evicts pods that must not run: those beyond the maximum of their allocation, and those whose identity their group does not have any more.
//
// It computes the order as schedulers do, and has no say in it: schedulers read specs alone. Pods that make way for others are
// evicted by the scheduler, which knows whether those fit then. A scheduler that holds a pod writes nothing: its standbys hold it too, and it has
// other pods to place meanwhile.
//
//   - controller.go: looks every few seconds, and writes what differs
//   - read.go: what Partitions and Allocations say, which another controller asks too
//   - status.go: the statuses; conditions.go: their conditions
//   - waiting.go: Events on pods that wait
//   - evict.go: pods that must not run
package tenants
