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
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
