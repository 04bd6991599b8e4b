// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// part is a goroutine that runs a component until its context ends.
type part struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// run starts a part in a goroutine of its own. An end that nobody asked for is a failure.
func (c *cluster) run(component func(context.Context) error) part {
	ctx, cancel := context.WithCancel(context.Background())
	p := part{cancel, make(chan struct{})}
	go func() {
		defer close(p.done)
		err := component(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("a part of the control plane ended by itself")
		}
		c.failed <- fmt.Errorf("%w; see %s", err, c.dir.File("logs", "kubernetes.log"))
	}()
	return p
}

// stop ends the parts, the last started first. Each has a moment to end in order:
// watches of clients that are still there would hold the API server for a minute.
func (c *cluster) stop() {
	c.Say("stopping")
	c.endKWOK.end(2 * time.Second)
	c.endWaker.end(2 * time.Second)
	c.endManager.end(2 * time.Second)
	if c.apiReady || c.Kubernetes != "" {
		// One that is still starting takes its end for a fault and ends the whole
		// process with a stack trace; it ends with the process as well.
		c.endAPI.end(2 * time.Second)
	}
	if c.etcd != nil {
		c.closeEtcd(3 * time.Second)
	}
	_ = os.Remove(c.dir.File("kubeconfig"))
	if c.KubeconfigOut != "" {
		_ = os.Remove(c.KubeconfigOut)
	}
}

// end ends the part, and reports whether it has ended within the limit.
func (p part) end(limit time.Duration) bool {
	if p.cancel == nil {
		return true
	}
	p.cancel()
	select {
	case <-p.done:
		return true
	case <-time.After(limit):
		return false
	}
}

func (c *cluster) closeEtcd(limit time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.etcd.Close()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
