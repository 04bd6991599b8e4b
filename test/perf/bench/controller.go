// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// controller starts Espalier's controller where the workload has it, and who checks bindings, and returns what stops them.
func (w *World) controller(ctx context.Context) (stop func() error, err error) {
	if !w.workload.Controller {
		return func() error { return nil }, nil
	}
	args := []string{"--kubeconfig=" + w.kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0"}
	if w.workload.Arbiter {
		if err := w.applyWebhook(ctx); err != nil {
			return nil, err
		}
		port, err := rig.FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--arbiter", "--arbiter-address=127.0.0.1", "--arbiter-port="+port)
	}
	p, err := rig.Start(rig.Command{Name: "espalier-controller", Path: w.Controller, Args: args, Dir: filepath.Join(w.logs, w.workload.Name)})
	if err != nil {
		return nil, err
	}
	stop = func() error { return p.StopCleanly(endTimeout) }
	switch {
	case w.workload.Arbiter:
		controller := stop
		stop = func() error { return errors.Join(controller(), w.deleteWebhook(ctx)) }
		err = w.asks(ctx, p)
	case w.workload.NullWebhook:
		controller := stop
		var webhook func() error
		if webhook, err = w.nullWebhook(ctx); err == nil {
			stop = func() error { return errors.Join(controller(), webhook()) }
		}
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}
