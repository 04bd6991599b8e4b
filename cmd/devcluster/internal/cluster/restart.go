// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The parts that can be restarted while all others go on.
const (
	etcdPart      = "etcd"
	apiServerPart = "kube-apiserver"
	managerPart   = "kube-controller-manager"
)

// Restartable are the names that Options.Restart takes.
func Restartable() []string { return []string{etcdPart, apiServerPart, managerPart} }

// CheckRestartable refuses a name that Options.Restart does not take. A bare cluster has no kube-controller-manager.
func CheckRestartable(part string, bare bool) error {
	known := Restartable()
	if bare {
		known = slices.DeleteFunc(known, func(name string) bool { return name == managerPart })
	}
	if !slices.Contains(known, part) {
		return fmt.Errorf("%q cannot be restarted: the parts that can are %s", part, strings.Join(known, ", "))
	}
	return nil
}

// endLimit is how long what runs inside the API server may take to end once nobody can reach it any more, and how long the controllers may take.
const endLimit = 30 * time.Second

// restart ends a part, etcd and the API server as a crash does, starts it again where it was, with what it had
// stored, and returns when the API server is ready. The parts that depend on it are not told.
func (c *cluster) restart(ctx context.Context, part string) error {
	var err error
	switch part {
	case etcdPart:
		err = c.restartEtcd(ctx)
	case apiServerPart:
		err = c.restartAPIServer(ctx)
	case managerPart:
		err = c.restartManager()
	default:
		err = CheckRestartable(part, c.Bare)
	}
	if err == nil {
		// Without etcd the API server is not ready either.
		err = waitAPIServer(ctx, c.client)
	}
	if err != nil {
		return err
	}
	c.Restarted(part)
	return nil
}

// awayFor is how long etcd is away at the least. A container that has ended is not back sooner either; and an etcd that is back in a quarter
// of a second is one that nobody has missed.
const awayFor = time.Second

func (c *cluster) restartEtcd(ctx context.Context) error {
	c.etcd.crash()
	select {
	case <-time.After(awayFor):
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.startEtcd()
}

func (c *cluster) restartAPIServer(ctx context.Context) error {
	address := c.listener.Addr().String()
	c.endAPI.cancel()
	// Watches of clients that are still there would hold it for a minute, and answers to
	// them would reach whom those of a process that is gone do not.
	c.listener.sever()
	if !c.endAPI.end(endLimit) {
		return fmt.Errorf("it did not end within %s; see %s", endLimit, c.dir.File("logs", "kubernetes.log"))
	}
	if err := c.listen(ctx, address); err != nil {
		return err
	}
	c.startAPIServer()
	return nil
}

// restartManager does not wait until the controllers act: nothing says when they do.
func (c *cluster) restartManager() error {
	if !c.endManager.end(endLimit) {
		return fmt.Errorf("it did not end within %s; see %s", endLimit, c.dir.File("logs"))
	}
	c.startManager()
	return nil
}
