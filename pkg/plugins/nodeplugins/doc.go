// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeplugins is the plugin that keeps pods to the nodes which have what
// must be installed there for them to start: the CSI drivers of their volumes and the
// runtime handler of their RuntimeClass.
//
// It promises that a pod is not placed on a node whose CSINode does not list every
// driver that the pod's volumes are known to need, nor on one that reports its runtime
// handlers without the pod's. A node that reports no handlers at all runs a kubelet or
// a runtime that cannot, and is taken to have them.
//
// A driver is known to be needed by a volume that is inline, or bound; by a claim
// that is not bound yet if the provisioner of its StorageClass has a CSIDriver object. A
// provisioner without one may be no CSI driver. Claims and volumes that do not
// exist are the business of VolumeBinding, which refuses their pods.
//
// It answers SwarmKit's plugin filter. The in-tree NodeVolumeLimits counts volumes of
// drivers that are there, and refuses nodes without one only for drivers whose
// CSIDriver asks for it (preventPodSchedulingIfMissing); in the shipped profile this filter
// comes first, so that its word is the one that is read. Of runtime handlers no plugin in-tree knows anything.
package nodeplugins
