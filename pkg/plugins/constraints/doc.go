// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints is the plugin that keeps pods to the nodes on which their
// constraints hold, in Docker's language.
//
// It promises that a pod with the annotation is only placed where every one of
// its constraints holds. A malformed one keeps the pod Pending, and its event and its
// PodScheduled condition quote the bad part and say what is allowed: a constraint is
// never switched off. What Docker calls a manager is a node of the control plane, and
// labels of the engine are labels of the node. Pods that run are left alone when their
// node changes.
//
// It answers SwarmKit's constraint filter. Whoever writes manifests for Kubernetes
// alone has nodeSelector and node affinity, which know no addresses.
package constraints
