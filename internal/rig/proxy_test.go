// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// echo answers every connection with what it says.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

// proxied is a proxy before an echo.
func proxied(t *testing.T) *Proxy {
	t.Helper()
	p, err := StartProxy(t.Context(), echo(t))
	must(t, err)
	t.Cleanup(p.Stop)
	return p
}

// says writes a byte and waits for the answer.
func says(t *testing.T, c net.Conn, wait time.Duration) error {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	must(t, c.SetReadDeadline(time.Now().Add(wait)))
	_, err := c.Read(make([]byte, 1))
	return err
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp4", address)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A proxy that is cut answers nothing and refuses nothing, on connections old and new.
func TestProxyIsCut(t *testing.T) {
	p := proxied(t)
	old := dial(t, p.Address)
	if err := says(t, old, 20*time.Second); err != nil {
		t.Fatalf("before the cut: %v", err)
	}
	p.Cut()
	for name, c := range map[string]net.Conn{"an old connection": old, "a new one": dial(t, p.Address)} {
		for range 2 {
			if err := says(t, c, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v, want silence", name, err)
			}
		}
	}
	p.Stop()
	if err := says(t, old, 20*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the end: %v, want a closed connection", err)
	}
}

// Who closes one side closes the other.
func TestProxyHandsOnTheEnd(t *testing.T) {
	p := proxied(t)
	c := dial(t, p.Address)
	must(t, c.(*net.TCPConn).CloseWrite())
	must(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want the end", err)
	}
}

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
