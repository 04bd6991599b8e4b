// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A listener that is severed ends the connections it has and those that come, and is
// itself still open: the API server takes one that fails for a fault.
func TestSeveredListener(t *testing.T) {
	c := &cluster{}
	if err := c.listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
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
	if err := before.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection before: %v", err)
	}
	c.listener.sever()
	for name, client := range map[string]net.Conn{"before": before, "after": dial(t, c)} {
		if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
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
	if err := c.listen(t.Context(), c.listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	_ = c.listener.Close()
}

func dial(t *testing.T, c *cluster) net.Conn {
	t.Helper()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp4", c.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
