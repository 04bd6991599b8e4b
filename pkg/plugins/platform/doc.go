// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platform is the plugin that keeps pods to the nodes whose operating system
// and architecture their programs are built for.
//
// It promises that a pod which says what it is built for, in its spec's os.name or in
// the annotation with platforms in Docker's form (linux/amd64,linux/arm64), is not placed where it could only fail
// to start. A node that does not tell its platform takes no such pod; pods that say
// nothing go anywhere. A malformed annotation keeps the pod Pending, and its event and
// its PodScheduled condition quote the bad part and say what is allowed.
//
// It answers SwarmKit's platform filter. Kubernetes checks spec.os only in the kubelet, which
// rejects the pod after it has been bound.
package platform
