// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// webhook is the one by which the API server asks about bindings, in the manifests.
const webhook = "espalier-arbiter"

// hears is how long the API server may take to hear of a webhook that it has stored.
const hears = 2 * time.Second

// controller starts Espalier's controller where the workload has it, and returns what stops it.
func (w *World) controller(ctx context.Context) (stop func() error, err error) {
	if !w.workload.Controller {
		return func() error { return nil }, nil
	}
	args := []string{"--kubeconfig=" + w.kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0"}
	if w.workload.Arbiter {
		applier, err := rig.NewApplier(w.config)
		if err != nil {
			return nil, err
		}
		if err := applier.Apply(ctx, manifests.Files, "components/arbiter/webhook.yaml", ""); err != nil {
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
	stop = func() error {
		err := p.StopCleanly(endTimeout)
		if w.workload.Arbiter {
			err = errors.Join(err, w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(ctx), webhook, metav1.DeleteOptions{}))
		}
		return err
	}
	if w.workload.Arbiter {
		if err := w.asks(ctx, p); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

// asks waits until the API server asks the arbiter.
func (w *World) asks(ctx context.Context, p *rig.Process) error {
	err := rig.Poll(ctx, endTimeout, pollEvery, "the API server to be told of the arbiter", func() error {
		select {
		case <-p.Done():
			return rig.Never(p.Err())
		default:
		}
		now, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhook, metav1.GetOptions{})
		if err == nil && len(now.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("starting the arbiter: %w", err)
	}
	time.Sleep(hears)
	return nil
}
