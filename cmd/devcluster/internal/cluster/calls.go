// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// calls are those that etcd is answering. When it is ended as by a crash it closes its store at once, and a watch that is still
// sending would read it: the process would die of that. So they end first.
type calls struct {
	// streams ends with end.
	streams context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards ended, and that nothing begins after it
	ended   bool
	running sync.WaitGroup
}

func newCalls() *calls {
	c := &calls{}
	c.streams, c.cancel = context.WithCancel(context.Background())
	return c
}

// options have a server tell of its calls.
func (c *calls) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(c.unary), grpc.ChainStreamInterceptor(c.stream)}
}

func (c *calls) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !c.begin() {
		return nil, errEnded
	}
	defer c.running.Done()
	return handler(ctx, request)
}

func (c *calls) stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if !c.begin() {
		return errEnded
	}
	defer c.running.Done()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(c.streams, cancel)()
	return handler(server, endingStream{stream, ctx})
}

var errEnded = status.Error(codes.Unavailable, "etcd is being ended")

func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.running.Add(1)
	}
	return !c.ended
}

// end lets no call begin any more, cancels those that would last, and waits for all.
func (c *calls) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
}

// endingStream is a stream that ends with another context than its own.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is the context that it ends with.
func (s endingStream) Context() context.Context { return s.ctx }
