// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rig

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// A port stays reserved after FreePort: the system refuses it to who does not ask to share it with
// connections that have ended, which is how it looks for any port; a server, which does, gets it.
func TestFreePortStaysReserved(t *testing.T) {
	port, err := FreePort()
	must(t, err)
	if err := bindAlone(t, port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("binding port %s alone: %v, want %v", port, err, syscall.EADDRINUSE)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("a server on the port: %v", err)
	}
	must(t, listener.Close())
}

// bindAlone binds the port without SO_REUSEADDR, which package net always sets.
func bindAlone(t *testing.T, port string) error {
	t.Helper()
	number, err := strconv.Atoi(port)
	must(t, err)
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	defer func() { _ = syscall.Close(socket) }()
	return syscall.Bind(socket, &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}})
}
