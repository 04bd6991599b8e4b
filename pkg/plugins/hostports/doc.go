// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostports is the plugin that keeps pods off the nodes on which a host port
// of theirs is taken. It replaces the in-tree plugin NodePorts, which knows only the
// ports of pods, and does not say which port it is about.
//
// It promises that a pod is never placed where one of its host ports is held
//
//   - by another pod, terminating ones too, until the last pod that has the port is gone;
//   - by the node itself: the annotation espalier.dev/reserved-host-ports on the node
//     lists such ports, as in 22/tcp,127.0.0.1:9100/tcp,8000-8010/udp, and the argument
//     reserved those of all nodes.
//
// The pods' ports are those of containers and of init containers that go on running
// (sidecars), as in-tree. Each refused node gives one reason, which names the first
// port in the way, by number; so the counts in the pod's message add up, and there are at
// most as many reasons as the pod has ports.
//
// An annotation that cannot be read closes its node to all pods with host ports,
// and to no others: to read it as none would give away the ports that somebody meant to
// keep. The reason says so, and the log quotes the bad part, once for each time it is
// written.
//
// It answers SwarmKit's host port filter, and differs from it where that one is at
// fault: ports are counted, so that of two pods with one port the first that goes does not
// free it, and processes outside of pods can be declared.
package hostports
