// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// every is the time between two looks at what the API server knows, at the certificate, and at pods that were admitted and have not come.
	every = time.Second
	// calling is how long a call to the API server may take.
	calling = 10 * time.Second
)

// Options are where an arbiter is reached.
type Options struct {
	// Webhook names the ValidatingWebhookConfiguration by which the API server asks.
	Webhook string
	// Service names the Service through which it does, in Namespace; "" is none, and the API server is told the address.
	Service, Namespace string
	// Address is that of this process, and Port the one that it serves at.
	Address string
	Port    int
	// Schedulers are those whose pods have domain limits, by schedulerName.
	Schedulers []string
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if net.ParseIP(o.Address) == nil {
		return fmt.Errorf("%q is no address of this process: use that of its pod, which the environment variable POD_IP has in the manifests", o.Address)
	}
	if o.Port < 1 || o.Port > 65535 {
		return fmt.Errorf("%d is no port: use 1 to 65535", o.Port)
	}
	if o.Webhook == "" {
		return errors.New("name the ValidatingWebhookConfiguration by which the API server asks")
	}
	return nil
}

// host is by what the API server knows the certificate.
func (o Options) host() string {
	if o.Service == "" {
		return o.Address
	}
	return o.Service + "." + o.Namespace + ".svc"
}

// Server is the arbiter as a whole.
type Server struct {
	// API reads from the API server and writes to it.
	API   client.Client
	Cache cache.Cache
	Clock clock.Clock
	Options

	limits *Limits
}

// New returns an arbiter. Index must have indexed the cache.
func New(api client.Client, from cache.Cache, clock clock.Clock, o Options) *Server {
	return &Server{API: api, Cache: from, Clock: clock, Options: o, limits: &Limits{Cache: from, Schedulers: o.Schedulers}}
}

// FollowPolicies has it keep the limits of policies from now on. Their kinds must be installed.
func (s *Server) FollowPolicies(ctx context.Context) error {
	return s.limits.followPolicies(ctx, s.Cache)
}

// Start serves until the context ends. The API server is told when the ledger knows all there is.
func (s *Server) Start(ctx context.Context) error {
	ledger := NewLedger(s.Clock)
	unregister, err := register(ledger)
	if err != nil {
		return err
	}
	defer unregister()
	if err := ledger.follow(ctx, s.Cache); err != nil {
		return err
	}
	certificates, err := newCertificates(s.host(), s.Clock.Now())
	if err != nil {
		return err
	}
	p := &publisher{api: s.API, Options: s.Options, path: "/bindings/" + strings.ToLower(rand.Text())} // the API server takes no other letters
	server, err := s.server(p.path, certificates, ledger)
	if err != nil {
		return err
	}
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Start(serving) })
	group.Go(func() error {
		s.keep(serving, server, p, certificates, ledger)
		return nil
	})
	return group.Wait()
}

// handler answers the API server.
func (s *Server) handler(ledger *Ledger) (http.Handler, error) {
	hook := &admission.Webhook{Handler: &Handler{Ledger: ledger, Pods: s.Cache, API: s.API, Limits: s.limits}}
	// A panic ends the connection, and the API server goes on without an answer. It would take the answer otherwise for a refusal.
	return admission.StandaloneWebhook(hook.WithRecoverPanic(false), admission.StandaloneOptions{MetricsPath: "/bindings"})
}

// server is the webhook at a path. A mux of its own keeps the path out of logs and metrics.
func (s *Server) server(path string, certificates *certificates, ledger *Ledger) (webhook.Server, error) {
	handler, err := s.handler(ledger)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	host := "" // all addresses of the pod
	if s.Service == "" {
		host = s.Address
	}
	return webhook.NewServer(webhook.Options{
		Host: host, Port: s.Port, WebhookMux: mux,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate, c.MinVersion = certificates.get, tls.VersionTLS13 }},
	}), nil
}

// keep does what is to be done now and then, until the context ends, and has nobody call any more when it has.
func (s *Server) keep(ctx context.Context, server webhook.Server, p *publisher, certificates *certificates, ledger *Ledger) {
	logger, said, listens := klog.FromContext(ctx), "", false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ledger.Expire()
		if listens = listens || server.StartedChecker()(nil) == nil; !listens {
			return
		}
		err := certificates.rotate(s.Clock.Now())
		if err == nil {
			calls, cancel := context.WithTimeout(ctx, calling)
			defer cancel()
			if err = p.publish(calls, certificates.bundle()); err == nil {
				certificates.known(s.Clock.Now())
				said = "" // what goes wrong again is said again
			}
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			logger.Error(err, "Bindings may go unchecked: the API server could not be told of the arbiter")
		}
	}, every)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), calling)
	defer cancel()
	if err := p.withdraw(ending); err != nil {
		logger.Error(err, "The Service of the arbiter still leads to a process that has ended")
	}
}
