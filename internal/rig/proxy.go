// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy hands the bytes of TCP connections on, until it is cut: from then on it hands on
// nothing and closes nothing, as a network that swallows packets does.
type Proxy struct {
	// Address is where it listens, on 127.0.0.1.
	Address string

	target   string
	listener net.Listener
	cut      chan struct{} // closed by Cut
	once     sync.Once     // closes cut
	running  sync.WaitGroup

	mu    sync.Mutex // guards conns, ended
	conns []net.Conn
	ended bool
}

// StartProxy starts a proxy to a TCP address.
func StartProxy(ctx context.Context, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a proxy to %s: %w", target, err)
	}
	p := &Proxy{Address: listener.Addr().String(), target: target, listener: listener, cut: make(chan struct{})}
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(ctx, client) })
		}
	})
	return p, nil
}

// Cut stops handing on.
func (p *Proxy) Cut() { p.once.Do(func() { close(p.cut) }) }

// Stop closes everything and waits until it is closed.
func (p *Proxy) Stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}

// keep has Stop close a connection; it is false if that has been.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close()
		return false
	}
	p.conns = append(p.conns, c)
	return true
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	if !p.keep(client) || p.isCut() {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp4", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.keep(server) {
		return
	}
	p.running.Go(func() { p.hand(client, server) })
	p.hand(server, client)
}

// hand copies until one side closes, which the other then hears, or the proxy is cut,
// which nobody does.
func (p *Proxy) hand(to, from net.Conn) {
	_, _ = io.Copy(severed{to, p}, from)
	if !p.isCut() {
		_, _ = to.Close(), from.Close()
	}
}

func (p *Proxy) isCut() bool {
	select {
	case <-p.cut:
		return true
	default:
		return false
	}
}

// severed is a writer that takes nothing more once its proxy is cut.
type severed struct {
	io.Writer
	proxy *Proxy
}

func (s severed) Write(b []byte) (int, error) {
	if s.proxy.isCut() {
		return 0, io.ErrClosedPipe
	}
	return s.Writer.Write(b)
}
