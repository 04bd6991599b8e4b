// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// webhookName is the one by which the API server asks about bindings, in the manifests.
	webhookName = "espalier-arbiter"
	// hears is how long the API server may take to hear of a webhook that it has stored.
	hears = 2 * time.Second
)

// applyWebhook stores the webhook of the manifests, which nobody answers yet.
func (w *World) applyWebhook(ctx context.Context) error {
	applier, err := rig.NewApplier(w.config)
	if err != nil {
		return err
	}
	return applier.Apply(ctx, manifests.Files, "components/arbiter/webhook.yaml", "")
}

func (w *World) deleteWebhook(ctx context.Context) error {
	return w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(ctx), webhookName, metav1.DeleteOptions{})
}

// asks waits until the API server asks who is to answer.
func (w *World) asks(ctx context.Context, p *rig.Process) error {
	err := rig.Poll(ctx, endTimeout, pollEvery, "the API server to be told of the webhook", func() error {
		select {
		case <-p.Done():
			return rig.Never(p.Err())
		default:
		}
		now, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookName, metav1.GetOptions{})
		if err == nil && len(now.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("starting the webhook: %w", err)
	}
	time.Sleep(hears)
	return nil
}

// nullWebhook has the API server ask one that allows each binding, and returns what ends it.
func (w *World) nullWebhook(ctx context.Context) (stop func() error, err error) {
	dir := filepath.Join(w.logs, w.workload.Name)
	bundle, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": bundle, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a certificate: %w", err)
		}
	}
	port, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	if err := w.applyWebhook(ctx); err != nil {
		return nil, err
	}
	p, err := rig.Start(rig.Command{Name: "nullwebhook", Path: w.NullWebhook, Args: []string{"--port=" + port, "--cert-dir=" + dir}, Dir: dir})
	if err != nil {
		return nil, errors.Join(err, w.deleteWebhook(ctx))
	}
	stop = func() error { return errors.Join(p.StopCleanly(endTimeout), w.deleteWebhook(ctx)) }
	address := net.JoinHostPort("127.0.0.1", port)
	err = rig.Poll(ctx, endTimeout, pollEvery, "the webhook to listen", func() error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err == nil {
		err = w.tell(ctx, "https://"+address+"/", bundle)
	}
	if err == nil {
		err = w.asks(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// tell says to the API server where to ask.
func (w *World) tell(ctx context.Context, url string, bundle []byte) error {
	hooks := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	now, err := hooks.Get(ctx, webhookName, metav1.GetOptions{})
	if err == nil {
		now.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
		_, err = hooks.Update(ctx, now, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("telling the API server of the webhook: %w", err)
	}
	return nil
}
