// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
)

// prepareServing sets what serving /healthz and /metrics needs by default, and sees
// whether the port can be had while it can still be said in one line.
func prepareServing(ctx context.Context, flags *pflag.FlagSet, c connection) error {
	// kube-scheduler logs an error at every start if no metric label is restricted. So
	// we restrict a label that no metric has. We do not if either flag is given: our value
	// would be refused, or would hide the one that is given.
	if !flags.Changed("allow-metric-labels") && !flags.Changed("allow-metric-labels-manifest") {
		if err := flags.Set("allow-metric-labels", "espalier_none,none=none"); err != nil {
			return err
		}
	}
	port, err := flags.GetInt("secure-port")
	if err != nil || port == 0 {
		return err
	}
	// The API server decides who may read the metrics. Outside a pod the only one that can
	// be asked is the one that pods are scheduled for.
	for _, name := range []string{"authentication-kubeconfig", "authorization-kubeconfig"} {
		if c.kubeconfig != "" && !flags.Changed(name) {
			if err := flags.Set(name, c.kubeconfig); err != nil {
				return err
			}
		}
	}
	return tryPort(ctx, flags, port)
}

// tryPort returns an error if the port cannot be bound. It listens there and closes the listener at once, so that
// kube-scheduler can bind the port later. With --permit-port-sharing or --permit-address-sharing it checks nothing,
// because kube-scheduler may then be able to bind a port that is in use.
func tryPort(ctx context.Context, flags *pflag.FlagSet, port int) error {
	for _, name := range []string{"permit-port-sharing", "permit-address-sharing"} {
		if shared, err := flags.GetBool(name); shared || err != nil {
			return err
		}
	}
	host, err := flags.GetIP("bind-address")
	if err != nil {
		return err
	}
	address := net.JoinHostPort(host.String(), strconv.Itoa(port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving at %s: %w; choose another by --secure-port or --bind-address, or --secure-port=0 to serve nothing", address, err)
	}
	return listener.Close()
}
