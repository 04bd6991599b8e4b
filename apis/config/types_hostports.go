// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// HostPortsArgs are the arguments of the plugin HostPorts, which keeps pods off
// the nodes on which a host port of theirs is taken.
type HostPortsArgs struct {
	metav1.TypeMeta

	// Reserved are the ports that every node holds itself.
	Reserved []string
}
