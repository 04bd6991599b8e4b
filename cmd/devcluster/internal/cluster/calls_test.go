// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// watching is a stream of which nothing is read but when it ends.
type watching struct {
	grpc.ServerStream
	ctx context.Context
}

func (w watching) Context() context.Context { return w.ctx }

// When calls are ended, a stream is cancelled, a request is answered, and all are through when end returns. Nothing begins after that.
func TestCallsEnd(t *testing.T) {
	c := newCalls()
	begun, answer, ended := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
	go func() {
		ended <- c.stream(nil, watching{ctx: t.Context()}, nil, func(_ any, s grpc.ServerStream) error {
			begun <- struct{}{}
			<-s.Context().Done()
			return s.Context().Err()
		})
	}()
	go func() {
		_, err := c.unary(t.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) {
			begun <- struct{}{}
			<-answer
			return nil, ctx.Err()
		})
		ended <- err
	}()
	<-begun
	<-begun
	through := make(chan struct{})
	go func() {
		c.end()
		close(through)
	}()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v", err)
	}
	select {
	case <-through:
		t.Error("a request is still being answered, and all are said to be through")
	case <-time.After(50 * time.Millisecond):
	}
	close(answer)
	if err := <-ended; err != nil {
		t.Errorf("the request ended with %v", err)
	}
	<-through
	if _, err := c.unary(t.Context(), nil, nil, nil); !errors.Is(err, errEnded) {
		t.Errorf("another request began: %v", err)
	}
	if err := c.stream(nil, watching{ctx: t.Context()}, nil, nil); !errors.Is(err, errEnded) {
		t.Errorf("another stream began: %v", err)
	}
}
