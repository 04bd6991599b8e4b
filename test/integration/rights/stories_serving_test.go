// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// metrics asks for /metrics until it is served.
func (s *stage) metrics(token string, certificates ...tls.Certificate) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, //nolint:gosec // a self-signed certificate of this test's own child
	}}
	return s.wait("/metrics", func() error {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://127.0.0.1:"+s.port+"/metrics", http.NoBody)
		s.must(err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	})
}

// serves: whoever may read /metrics reads them, known by a token.
func serves(s *stage) error {
	token, err := rig.ReaderToken(s.Context(), cluster.client, s.name, s.name+"-reader", "/metrics")
	s.must(err)
	return s.metrics(token)
}

// recognizes: or by a certificate that the cluster's authority has signed.
func recognizes(s *stage) error {
	config := rest.CopyConfig(cluster.config)
	s.must(rest.LoadTLSFiles(config))
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	s.must(err)
	return s.metrics("", certificate)
}
