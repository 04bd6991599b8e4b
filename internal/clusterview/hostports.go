// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// HostPorts are the host ports of the containers that run as long as the pod does: those of
// sidecars are, and those of other init containers are not.
func HostPorts(pod *corev1.Pod) []hostport.Port {
	var ports []hostport.Port
	add := func(of []corev1.ContainerPort) {
		for _, p := range of {
			if p.HostPort > 0 {
				ports = append(ports, HostPort(p))
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c.Ports)
		}
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Ports)
	}
	return ports
}

// HostPort translates a container's port that has a host port.
//
// An address that cannot be read, which only older API servers let in, is every
// address: too careful costs a node, too careless a pod that cannot start.
func HostPort(p corev1.ContainerPort) hostport.Port {
	address, _ := netip.ParseAddr(p.HostIP)
	return hostport.Port{
		Address:  hostport.Address(address),
		Protocol: hostport.Protocol(strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))),
		Number:   uint16(p.HostPort),
	}
}

// ReservedHostPorts are the ports that the node's annotation keeps for the node
// itself. The error quotes what cannot be read and says what is allowed.
func ReservedHostPorts(node *corev1.Node) (hostport.Set, error) {
	ports, err := hostport.Parse(node.Annotations[ReservedHostPortsAnnotation])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", ReservedHostPortsAnnotation, err)
	}
	return ports, nil
}
