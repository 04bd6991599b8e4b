// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// A listener that is severed ends the connections it has and those that come, and is
// itself still open: the API server takes one that fails for a fault.
func TestSeveredListener(t *testing.T) {
	c := &cluster{}
	must(t, c.listen(t.Context(), "127.0.0.1:0"))
	accepted := make(chan error, 1)
	go func() {
		for {
			if _, err := c.listener.Accept(); err != nil {
				accepted <- err
				return
			}
		}
	}()
	before := dial(t, c)
	must(t, before.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if _, err := before.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection before: %v", err)
	}
	c.listener.sever()
	for name, client := range map[string]net.Conn{"before": before, "after": dial(t, c)} {
		must(t, client.SetReadDeadline(time.Now().Add(20*time.Second)))
		if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection from %s is still there: %v", name, err)
		}
	}
	select {
	case err := <-accepted:
		t.Errorf("it has failed: %v", err)
	default:
	}
	if err := c.listener.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed, it says %v", err)
	}
	// A part that is restarted comes back where it was.
	must(t, c.listen(t.Context(), c.listener.Addr().String()))
	_ = c.listener.Close()
}

func dial(t *testing.T, c *cluster) net.Conn {
	t.Helper()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp4", c.listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// must ends the test if there is an error.
var must = placementtest.Must

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

func TestSilence(t *testing.T) {
	for _, c := range []struct {
		nodes int
		grace time.Duration
		want  time.Duration
		lease uint
	}{
		{0, 0, 20 * time.Second, 20},
		{24, 0, 20 * time.Second, 20},
		{100, 0, 20 * time.Second, 20},
		{1000, 0, 200 * time.Second, 200},
		{5000, 0, 1000 * time.Second, 1000},
		{5000, 8 * time.Second, 8 * time.Second, 8},
		{1, 4 * time.Second, 4 * time.Second, 4},
	} {
		grace, lease := silence(c.nodes, c.grace)
		if grace != c.want || lease != c.lease {
			t.Errorf("%d nodes, grace %s: %s and a lease of %d s, want %s and %d", c.nodes, c.grace, grace, lease, c.want, c.lease)
		}
	}
}

func TestDefaultLeasesStayAffordable(t *testing.T) {
	for _, nodes := range []int{1, 24, 500, 5000, 50000} {
		_, lease := silence(nodes, 0)
		if perSecond := float64(nodes) / (float64(lease) / 4); perSecond > renewalsPerSecond {
			t.Errorf("%d nodes renew %.0f leases a second, more than %d", nodes, perSecond, renewalsPerSecond)
		}
	}
}
