// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// started is a webhook that is served.
type started struct{ webhook.Server }

func (started) StartedChecker() healthz.Checker {
	return func(*http.Request) error { return nil }
}

// What keeps the API server from being told is said once, and once more when it comes again.
func TestTroubleIsSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith(t)
		s := New(api, &informertest.FakeInformers{}, clock.RealClock{}, Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1})
		certificates, err := newCertificates(s.host(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		var running sync.WaitGroup
		running.Go(func() {
			s.keep(ctx, started{}, &publisher{api: api, Options: s.Options, path: "/x"}, certificates, NewLedger(s.Clock))
		})
		said := func(want int) {
			t.Helper()
			time.Sleep(5*every + every/2)
			log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if n := strings.Count(log, "could not be told"); n != want {
				t.Errorf("it is said %d times, want %d:\n%s", n, want, log)
			}
		}
		said(1)
		if err := api.Create(t.Context(), webhookOf()); err != nil {
			t.Error(err)
		}
		said(1)
		if at := published(t, api).ClientConfig; at.URL == nil || len(at.CABundle) == 0 {
			t.Errorf("the configuration is there again, and the API server is told %+v", at)
		}
		if err := api.Delete(t.Context(), webhookOf()); err != nil {
			t.Error(err)
		}
		said(2)
		cancel()
		running.Wait()
	})
}

// The API server is told where to ask and whom to trust, asks there, and what the watches have shown is in the answer.
func TestServer(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	api, informers := apiWith(t, webhookOf(), podOf("large", 2000), podOf("small", 200)), &informertest.FakeInformers{}
	s := New(api, informers, clock.RealClock{}, Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: port})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	at := published(t, api).ClientConfig
	for deadline := time.Now().Add(10 * time.Second); len(at.CABundle) == 0; at = published(t, api).ClientConfig {
		if time.Now().After(deadline) {
			t.Fatal("the API server is told nothing")
		}
		time.Sleep(20 * time.Millisecond)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(at.CABundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	asks := func(url string, body []byte) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	review := func(pod, node string) *admissionv1.AdmissionResponse {
		t.Helper()
		request := asked(t, pod, node).AdmissionRequest
		body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request})
		if err != nil {
			t.Fatal(err)
		}
		response := asks(*at.URL, body)
		defer func() { _ = response.Body.Close() }()
		var answer admissionv1.AdmissionReview
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Response == nil {
			t.Fatalf("status %d: %v", response.StatusCode, err)
		}
		return answer.Response
	}
	nodes, err := informers.FakeInformerFor(t.Context(), &corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := informers.FakeInformerFor(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	nodes.Add(nodeOf("n", 1000))
	if r := review("large", "n"); r.Allowed || !strings.Contains(r.Result.Message, "has no room") {
		t.Errorf("a pod is too large, and the answer %+v", r)
	}
	if r := review("small", "n"); !r.Allowed {
		t.Errorf("there is room, and the answer %+v", r)
	}
	pods.Add(onNode(podOf("there", 900), "n"))
	if r := review("large", "n"); r.Allowed || !strings.Contains(r.Result.Message, "and 0 of 1 are free") {
		t.Errorf("the node is full, and the answer %+v", r)
	}
	nodes.Delete(nodeOf("n", 1000))
	if r := review("large", "n"); !r.Allowed {
		t.Errorf("nobody knows the node, and the answer %+v", r)
	}
	// Who does not know the path asks in vain.
	guessed := asks((*at.URL)[:strings.LastIndex(*at.URL, "/")+1]+"guess", nil)
	_ = guessed.Body.Close()
	if guessed.StatusCode != http.StatusNotFound {
		t.Errorf("at a path that is guessed the status is %d", guessed.StatusCode)
	}
}
