// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership divides the workloads of a cluster among schedulers that are active at
// the same time. A spread needs all nodes, so nodes are never divided.
//
//   - rendezvous.go: which of several replicas owns a workload
//   - members.go: which replicas there are, and when one may place its share
//   - lease.go: what a replica sees of another, and which Lease it takes itself
//
// Each replica holds a Lease of its own. It is a member from when others see it there until
// that runs out or is given back. The share of a member that goes falls to those that stay,
// and nothing else changes hands.
//
// # Two replicas never place one workload
//
// A replica writes nothing when its own Lease has run out, and nobody can renew one that has:
// that is its fence's business. So others may act as soon as a Lease has not been renewed for
// as long as it lasts. It remains that one joins while others place:
//
//	new replica:   takes a Lease ─► lists all Leases ─► waits until each holder on that list
//	                                                    acknowledges it ─► places its share
//	each holder:   sees the new Lease ─► begins no binding of that share ─► those under way
//	                                     end ─► acknowledges it, with the next renewal
//
// Of two that join at once, the one that lists later sees the other, whose Lease was there
// before it listed. Holders that come after a replica's own list have it on theirs, so it
// need not wait for them.
//
// # Replicas that lead
//
// As long as one holds the Lease by which a scheduler leads, it places the pods of all workloads, and several that are active
// place none: so a rolling update that switches them on never has both. Who comes to lead does not wait for them.
// They stop when they see its Lease.
package ownership
