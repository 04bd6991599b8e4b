// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/internal/serverversion"
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

// reach waits until the API server answers, and says so in one line if it does not. It returns its version, nil where it does not tell.
func reach(ctx context.Context, out io.Writer, c connection) (*version.Version, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = reachTry
	asker, err := serverversion.New(config)
	if err != nil {
		return nil, err
	}
	var seen atomic.Pointer[version.Version] // a call that is abandoned may end later
	err = await(ctx, out, config.Host, func() error {
		v, err := asker.Oldest()
		seen.Store(v)
		return err
	})
	return seen.Load(), err
}

// await calls ask until the API server answers, for reachFor at most. Forbidden counts as
// an answer. Unauthorized is an error at once, as is what waiting cannot change. A call
// that does not return is abandoned after reachTry and tried again, because not everything
// below it heeds a timeout.
func await(ctx context.Context, out io.Writer, host string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	for said := false; ; {
		last := answerTo(ctx, ask)
		switch {
		case last == nil || apierrors.IsForbidden(last):
			return nil
		case apierrors.IsUnauthorized(last):
			return fmt.Errorf("the API server at %s does not accept the credentials: %w", host, last)
		case hopeless(last):
			return fmt.Errorf("the API server at %s cannot be reached: %w", host, last)
		}
		if !said {
			said = true
			fmt.Fprintf(out, "Waiting up to %v for the API server at %s: %v\n", reachFor, host, last)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server at %s cannot be reached: %w", host, last)
		case <-time.After(reachEvery):
		}
	}
}

// answerTo asks once, and waits no longer than a try may take.
func answerTo(ctx context.Context, ask func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- ask() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return errors.New("no answer")
	case <-time.After(reachTry):
		return fmt.Errorf("no answer in %v", reachTry)
	}
}

// hopeless reports what stays as it is however long one waits: certificates that do
// not match, another protocol, no API server at that address, no credentials.
func hopeless(err error) bool {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
	)
	if errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid) || errors.As(err, &record) {
		return true
	}
	// These carry no type.
	for _, words := range []string{"unable to parse the server version", "getting credentials", "unsupported protocol scheme", "server gave HTTP response to HTTPS client"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// config is how the API server is reached.
func (c connection) config() (*rest.Config, error) {
	if c.master == "" && c.kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("cannot find the API server: set --kubeconfig or clientConnection.kubeconfig, or run in a pod")
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags(c.master, c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", c.kubeconfig, err)
	}
	return config, nil
}
