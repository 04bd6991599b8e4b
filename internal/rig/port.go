// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"net"
)

// FreePort is a port of the loopback address that was free a moment ago: kube-scheduler's
// flags take no 0 for "any".
func FreePort() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port on 127.0.0.1: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", fmt.Errorf("looking for a free port on 127.0.0.1: %w", err)
	}
	return port, listener.Close()
}
