// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// HostPortsArgs are the arguments of the plugin HostPorts, which keeps pods off
// the nodes on which a host port of theirs is taken.
type HostPortsArgs struct {
	metav1.TypeMeta `json:",inline"`

	// reserved are the ports that every node holds itself, one port or range each:
	// 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp, [::1]:9100/tcp. Without an address
	// it is every address of the node; the protocol, tcp, udp or sctp, is required. A
	// pod that wants such a port is placed nowhere. Ports that only some nodes
	// hold belong into the annotation espalier.dev/reserved-host-ports of those nodes,
	// which adds to this list. At most 256.
	// Default: none.
	// +listType=atomic
	Reserved []string `json:"reserved,omitempty"`
}
