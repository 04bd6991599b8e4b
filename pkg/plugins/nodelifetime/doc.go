// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodelifetime is the plugin that keeps a pod with a lease off the nodes that end before its lease does.
//
// It promises that no pod is placed on a node whose end (annotation espalier.dev/valid-until) is not strictly later than the moment of the
// decision plus the pod's lease (annotation espalier.dev/lease), and that the pod is bound with when its lease ends. A pod without a lease
// goes anywhere. A lease ends no pod and protects none: a node may end earlier than was said, and what runs longer than its lease goes on.
//
//   - A malformed lease keeps its pod Pending, with a message that quotes it. A malformed end closes its node to pods with leases
//     alone, and an Event on the node quotes it.
//   - Time passes between two decisions. One decision knows one moment: all nodes are judged by it, and the lease begins with it.
//   - What filters said is remembered by others, for pods with the same lease: see clusterview.AddNeeds. That is right as long as
//     the clock goes forward. When it is put back, all is asked again.
//   - Where the arguments say so, the deadline of a pod or its Job is its lease. It is the whole deadline, also for a pod that
//     is tried again.
//
// It answers the seed on Treadmill's scheduler, "Application lifetime constraints and reboot awareness" (TV18). Without leases in the
// arguments there is no such filter, and nothing is watched.
//
//   - filter.go: PreFilter and Filter
//   - reserve.go: what the pod is bound with
//   - events.go: what makes a refused pod worth another try; jobs.go: the deadlines of Jobs
//   - report.go: ends that cannot be read
package nodelifetime
