// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/prometheus/common/model"
	"k8s.io/component-base/metrics/testutil"
)

// metered is a process that says what it has counted: a scheduler of a story's own, or the controller.
type metered struct {
	*story
	url string
}

// withMetrics starts a scheduler that serves its metrics to everybody on this machine.
func (s *story) withMetrics(flags ...string) *metered {
	s.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	s.must(err, "finding a port")
	_, port, err := net.SplitHostPort(l.Addr().String())
	s.must(err, "finding a port")
	s.must(l.Close(), "finding a port")
	s.ownScheduler(s.scheduler, append(flags, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--authentication-kubeconfig="+world.schedulerKubeconfig, "--authorization-kubeconfig="+world.schedulerKubeconfig,
		"--authorization-always-allow-paths=/metrics")...)
	return &metered{story: s, url: "https://127.0.0.1:" + port + "/metrics"}
}

// metric returns the sum of a metric over its labels, 0 if it was never counted.
func (m *metered) metric(name string) (sum float64) {
	m.Helper()
	for _, n := range m.by(name, "") {
		sum += n
	}
	return sum
}

// by returns the sums of a metric by a label.
func (m *metered) by(name, label string) map[string]float64 {
	m.Helper()
	metrics := testutil.NewMetrics()
	m.must(testutil.ParseMetrics(m.page(), &metrics), "reading metrics")
	sums := make(map[string]float64)
	for _, one := range metrics[name] {
		sums[string(one.Metric[model.LabelName(label)])] += float64(one.Value)
	}
	return sums
}

// page waits for an answer and returns it.
func (m *metered) page() (page string) {
	m.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a self-signed certificate of this test's own child
	}}
	m.until("metrics", func() error {
		request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, m.url, http.NoBody)
		if err != nil {
			return err
		}
		if world.metricsToken != "" {
			request.Header.Set("Authorization", "Bearer "+world.metricsToken)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		page = string(text)
		return nil
	})
	return page
}
