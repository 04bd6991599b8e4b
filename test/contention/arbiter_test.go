// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// webhookName is that of the configuration in the manifests.
const webhookName = "espalier-arbiter"

// arbiter is a controller that checks bindings.
type arbiter struct {
	*rig.Process
	metrics string
}

// webhook installs that of the manifests.
func (s *story) webhook() {
	s.Helper()
	applier, err := rig.NewApplier(world.config)
	s.must(err)
	s.must(applier.Apply(s.ctx, manifests.Files, "components/arbiter/webhook.yaml", ""))
	s.Cleanup(func() {
		if err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), webhookName, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
}

// arbiter starts a controller as the arbiter. The webhook must be installed, and there is one at a time.
func (s *story) arbiter(name string) *arbiter {
	s.Helper()
	before := s.authority()
	var err error
	ports := make([]string, 2)
	for i := range ports {
		ports[i], err = rig.FreePort()
		s.must(err)
	}
	a := &arbiter{metrics: "https://127.0.0.1:" + ports[1] + "/metrics"}
	a.Process, err = rig.Start(rig.Command{
		Name: s.name + "-" + name, Path: world.controls, Dir: world.dir,
		Args: []string{
			"--kubeconfig=" + world.controller, "--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=127.0.0.1:" + ports[1],
			"--arbiter", "--arbiter-address=127.0.0.1", "--arbiter-port=" + ports[0],
		},
	})
	s.must(err)
	s.Cleanup(func() {
		if err := a.Unasked(); err != nil {
			s.Error(err)
		}
		if err := a.Stop(15 * time.Second); err != nil {
			s.Error(err)
		}
	})
	s.until("the API server to be told of the arbiter", a.Process, func() error {
		if s.authority() == before {
			return errors.New("it is not")
		}
		return nil
	})
	s.until("the API server to ask the arbiter", a.Process, func() error {
		// Of a pod that is not there it is asked all the same.
		nobody := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
		if err := s.client.CoreV1().Pods(s.name).Bind(s.ctx, nobody, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		counts, err := a.bindings(s.ctx)
		if err == nil && counts["unchecked"] == 0 {
			err = errors.New("it does not")
		}
		return err
	})
	return a
}

// authority is by which the API server knows the arbiter, "" for none.
func (s *story) authority() string {
	s.Helper()
	now, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(s.ctx, webhookName, metav1.GetOptions{})
	s.must(err)
	return string(now.Webhooks[0].ClientConfig.CABundle)
}

// bindings are those about which the arbiter was asked, by what it said.
func (a *arbiter) bindings(ctx context.Context) (map[string]int, error) {
	_, page, err := rig.Get(ctx, a.metrics, world.metricsToken)
	if err != nil {
		return nil, err
	}
	families, err := testutil.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	family, is := families["espalier_arbiter_bindings_total"]
	if !is {
		return nil, fmt.Errorf("%s has no such metric", a.metrics)
	}
	counts := map[string]int{}
	for _, m := range family.GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
	}
	return counts, nil
}
