// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// listener is a listener that can take its connections along when it ends, as the
// kernel does with those of a process that dies.
type listener struct {
	net.Listener
	mu      sync.Mutex // guards severed, conns
	severed bool
	conns   map[*conn]bool
}

// conn is a connection that its listener knows until it is closed.
type conn struct {
	net.Conn
	of *listener
}

// listen opens the API server's port: the one of the address, or any for port 0.
func (c *cluster) listen(ctx context.Context, address string) error {
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp4", address)
	if err != nil {
		return fmt.Errorf("opening %s for the API server: %w", address, err)
	}
	c.listener = &listener{Listener: inner, conns: map[*conn]bool{}}
	return nil
}

// Accept waits for the next connection. Once severed it lets nobody in, and still waits
// for its owner to close it: the API server takes a listener that fails for a fault.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if accepted := l.admit(inner); accepted != nil {
			return accepted, nil
		}
		_ = inner.Close()
	}
}

func (l *listener) admit(inner net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed {
		return nil
	}
	accepted := &conn{Conn: inner, of: l}
	l.conns[accepted] = true
	return accepted
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// sever closes every connection that has been accepted, and from now on each that comes.
func (l *listener) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	clear(l.conns)
}
