// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/controllers/arbiter"
)

// arbiterFlags are those about the check of bindings.
func (o *options) arbiterFlags(flags *pflag.FlagSet) {
	a := &o.arbiter
	flags.BoolVar(&o.arbitrates, "arbiter", false, "Whether bindings are checked before they are made, whoever makes them, so that several schedulers do not give the same room of a node away twice.")
	flags.StringVar(&a.Webhook, "arbiter-webhook", "espalier-arbiter", "The ValidatingWebhookConfiguration by which the API server asks about bindings. It must be there; where it leads to is written into it.")
	flags.StringVar(&a.Service, "arbiter-service", "", "The Service by which the API server reaches the controller for that, in the namespace of the Lease. It selects no pods: its EndpointSlice is written. Empty has the API server call the address.")
	flags.StringVar(&a.Address, "arbiter-address", "", "The address at which it does. Empty is that in the environment variable POD_IP.")
	flags.IntVar(&a.Port, "arbiter-port", 9443, "The port at which it does.")
}

// readArbiter checks these flags.
func (o *options) readArbiter() error {
	if !o.arbitrates {
		return nil
	}
	if o.arbiter.Address == "" {
		o.arbiter.Address = os.Getenv("POD_IP")
	}
	o.arbiter.Namespace, o.arbiter.Schedulers = o.namespace, o.schedulers
	if err := o.arbiter.Validate(); err != nil {
		return fmt.Errorf("--arbiter: %w", err)
	}
	return nil
}

// newArbiter makes the arbiter, nil if the flags ask for none.
func (o *options) newArbiter(m ctrl.Manager) (*arbiter.Server, error) {
	if !o.arbitrates {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err := arbiter.Index(context.Background(), m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	// What it writes it reads back from the API server: a cache would need the right to list all webhooks.
	api, err := client.New(m.GetConfig(), client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("making the client of the arbiter: %w", err)
	}
	a := arbiter.New(api, m.GetCache(), clock.RealClock{}, o.arbiter)
	return a, m.Add(a)
}
