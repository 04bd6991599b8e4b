// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// reachFor is how long an API server may take to answer at the start. A scheduler
	// beside an API server that restarts should not give up at once; one with a
	// wrong address should not look for ever as if it were at work.
	reachFor = 15 * time.Second
	// reachEvery is the pause between two tries.
	reachEvery = 500 * time.Millisecond
	// reachTry is how long one try may take.
	reachTry = 5 * time.Second
)

// reach waits until the API server answers, and says so in one line if it does not.
func reach(ctx context.Context, out io.Writer, c connection) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	config.Timeout = reachTry
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	return await(ctx, out, config.Host, func() error {
		_, err := client.ServerVersion()
		return err
	})
}

// await asks until there is an answer, of whatever kind. An API server that refuses
// the request has been reached; only one that does not know who asks never will be of use.
func await(ctx context.Context, out io.Writer, host string, ask func() error) error {
	var last error
	said := false
	err := wait.PollUntilContextTimeout(ctx, reachEvery, reachFor, true, func(context.Context) (bool, error) {
		last = ask()
		switch {
		case last == nil || apierrors.IsForbidden(last):
			return true, nil
		case apierrors.IsUnauthorized(last):
			return false, fmt.Errorf("the API server at %s does not accept the credentials: %w", host, last)
		}
		if !said {
			said = true
			fmt.Fprintf(out, "Waiting up to %v for the API server at %s: %v\n", reachFor, host, last)
		}
		return false, nil
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("the API server at %s cannot be reached: %w", host, last)
	}
	return err
}

// config is how the API server is reached.
func (c connection) config() (*rest.Config, error) {
	if c.master == "" && c.kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no API server: name one by --kubeconfig or the configuration's clientConnection.kubeconfig, or run in a pod")
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags(c.master, c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", c.kubeconfig, err)
	}
	return config, nil
}
