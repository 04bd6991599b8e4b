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
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// started is a webhook that is served.
type started struct{ webhook.Server }

func (started) StartedChecker() healthz.Checker { return func(*http.Request) error { return nil } }

// What keeps the API server from being told is said once, and once more when it comes again.
func TestTroubleIsSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith(t)
		s := New(api, &informertest.FakeInformers{}, clock.RealClock{}, Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1})
		certificates, err := newCertificates(s.host(), time.Now())
		controllertest.Must(t, err)
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
		controllertest.Must(t, api.Create(t.Context(), webhookOf()))
		said(1)
		if at := published(t, api).ClientConfig; at.URL == nil || len(at.CABundle) == 0 {
			t.Errorf("the configuration is there again, and the API server is told %+v", at)
		}
		controllertest.Must(t, api.Delete(t.Context(), webhookOf()))
		said(2)
		cancel()
		running.Wait()
	})
}

// The API server is told where to ask and whom to trust, asks there, and what the watches have shown is in the answer.
func TestServer(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	controllertest.Must(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	api, informers := apiWith(t, webhookOf(), podOf("large", 2000), podOf("small", 200)), &informertest.FakeInformers{}
	s := New(api, informers, clock.RealClock{}, Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: port})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	defer func() {
		cancel()
		controllertest.Must(t, <-ended)
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
		controllertest.Must(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := transport.RoundTrip(request)
		controllertest.Must(t, err)
		return response
	}
	review := func(pod, node string) *admissionv1.AdmissionResponse {
		t.Helper()
		response := asks(*at.URL, reviewOf(t, pod, node))
		defer func() { _ = response.Body.Close() }()
		var answer admissionv1.AdmissionReview
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Response == nil {
			t.Fatalf("status %d: %v", response.StatusCode, err)
		}
		return answer.Response
	}
	nodes, err := informers.FakeInformerFor(t.Context(), &corev1.Node{})
	controllertest.Must(t, err)
	pods, err := informers.FakeInformerFor(t.Context(), &corev1.Pod{})
	controllertest.Must(t, err)
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

// webhookOf is the configuration as the manifests have it.
func webhookOf() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "espalier-arbiter", UID: "w"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "bindings.espalier.dev", FailurePolicy: new(admissionregistrationv1.Ignore),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "kube-system", Name: "espalier-arbiter"}},
		}},
	}
}

func published(t *testing.T, api client.Client) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var is admissionregistrationv1.ValidatingWebhookConfiguration
	controllertest.Must(t, api.Get(t.Context(), client.ObjectKey{Name: "espalier-arbiter"}, &is))
	return is.Webhooks[0]
}

func TestPublishByAddress(t *testing.T) {
	api := apiWith(t, webhookOf())
	p := &publisher{api: api, Options: Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1234}, path: "/bindings/X"}
	for range 2 {
		controllertest.Must(t, p.publish(t.Context(), []byte("bundle")))
		at := published(t, api).ClientConfig
		if at.URL == nil || *at.URL != "https://127.0.0.1:1234/bindings/X" || at.Service != nil || string(at.CABundle) != "bundle" {
			t.Errorf("the API server is told %+v", at)
		}
	}
	controllertest.Must(t, p.withdraw(t.Context()))
}

func TestPublishByService(t *testing.T) {
	api := apiWith(t, webhookOf())
	o := Options{Webhook: "espalier-arbiter", Service: "espalier-arbiter", Namespace: "kube-system", Address: "10.1.2.3", Port: 9443}
	leads := func(want ...string) {
		t.Helper()
		var slice discoveryv1.EndpointSlice
		controllertest.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "espalier-arbiter"}, &slice))
		var got []string
		for _, e := range slice.Endpoints {
			got = append(got, e.Addresses...)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] || slice.Labels[discoveryv1.LabelServiceName] != "espalier-arbiter" || *slice.Ports[0].Port != 9443 || slice.OwnerReferences[0].UID != "w" {
			t.Errorf("the Service leads to %v, want %v: %+v", got, want, slice)
		}
	}
	first := &publisher{api: api, Options: o, path: "/bindings/X"}
	controllertest.Must(t, first.publish(t.Context(), []byte("one")))
	at := published(t, api).ClientConfig
	if s := at.Service; s == nil || *s.Path != "/bindings/X" || *s.Port != 443 || s.Name != "espalier-arbiter" || string(at.CABundle) != "one" {
		t.Errorf("the API server is told %+v", at)
	}
	leads("10.1.2.3")
	controllertest.Must(t, first.withdraw(t.Context()))
	leads()
	// The next leader takes its place.
	o.Address = "10.1.2.4"
	controllertest.Must(t, (&publisher{api: api, Options: o, path: "/bindings/Y"}).publish(t.Context(), []byte("two")))
	leads("10.1.2.4")
	// The one before it ends late, and takes nothing of that back.
	controllertest.Must(t, first.withdraw(t.Context()))
	leads("10.1.2.4")
	if at := published(t, api).ClientConfig; *at.Service.Path != "/bindings/Y" || string(at.CABundle) != "two" {
		t.Errorf("the API server is told %+v", at)
	}
}

// Where the manifests are not installed the error says what is missing.
func TestPublishNothing(t *testing.T) {
	p := &publisher{api: apiWith(t), Options: Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1}, path: "/"}
	err := p.publish(t.Context(), nil)
	if want := "reading ValidatingWebhookConfiguration espalier-arbiter, which the manifests have: "; err == nil || err.Error()[:len(want)] != want {
		t.Errorf("it says %v", err)
	}
	empty := webhookOf()
	empty.Webhooks = nil
	p.api = apiWith(t, empty)
	if err, want := p.publish(t.Context(), nil), "ValidatingWebhookConfiguration espalier-arbiter has no webhook: apply the manifests again"; err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}

func TestValidate(t *testing.T) {
	const address = " is no address of this process: use that of its pod, which the environment variable POD_IP has in the manifests"
	controllertest.WantInvalid(t, func() Options { return Options{Webhook: "w", Address: "::1", Port: 1} }, map[string]func(*Options){
		`""` + address:                     func(o *Options) { o.Address = "" },
		`"localhost"` + address:            func(o *Options) { o.Address = "localhost" },
		"0 is no port: use 1 to 65535":     func(o *Options) { o.Port = 0 },
		"65536 is no port: use 1 to 65535": func(o *Options) { o.Port = 65536 },
		"name the ValidatingWebhookConfiguration by which the API server asks": func(o *Options) { o.Webhook = "" },
	})
}

// trusts reports whether who has been given a bundle trusts, at some time, the certificate that is served.
func trusts(t *testing.T, c *certificates, bundle []byte, at time.Time) bool {
	t.Helper()
	served, err := c.get(nil)
	controllertest.Must(t, err)
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	controllertest.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: c.host, Roots: roots, CurrentTime: at})
	return err == nil
}

// rotated are certificates of which the API server is told each time that they are looked at.
func rotated(t *testing.T, made time.Time, looks ...time.Time) *certificates {
	t.Helper()
	c, err := newCertificates("espalier-arbiter.kube-system.svc", made)
	controllertest.Must(t, err)
	for _, at := range looks {
		controllertest.Must(t, c.rotate(at))
		c.known(at)
	}
	return c
}

// Whoever sets the clock has another certificate be made. How long the process has run says nothing of it.
func TestClockIsSet(t *testing.T) {
	now := time.Now()
	for name, by := range map[string]time.Duration{"back": -2 * early, "far back": -2 * lifetime, "on": 2 * lifetime} {
		set := now.Add(by)
		for while, looks := range map[string][]time.Time{"there is one": nil, "another one is to be used soon": {now.Add(lifetime * 3 / 4)}} {
			c := rotated(t, now, append(looks, set, set.Add(announced))...)
			if at := set.Add(announced); !trusts(t, c, c.bundle(), at) {
				t.Errorf("the clock is set %s while %s, and what is served is not valid", name, while)
			}
			if c.used.until != c.used.until.Round(0) {
				t.Error("the end of a certificate goes by how long the process has run")
			}
		}
	}
}

// At every moment the API server trusts what is served by what it was told last.
func TestRotation(t *testing.T) {
	now := time.Now()
	c, err := newCertificates("espalier-arbiter.kube-system.svc", now)
	controllertest.Must(t, err)
	first := c.bundle()
	told := first
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	rotate := func(at time.Time) {
		t.Helper()
		controllertest.Must(t, c.rotate(at))
		if !trusts(t, c, told, at) {
			t.Errorf("on day %d the API server does not trust the arbiter", int(at.Sub(now).Hours()/24))
		}
	}
	rotate(day(19))
	if !bytes.Equal(c.bundle(), first) {
		t.Error("another certificate is made though more than a third of the time is left")
	}
	rotate(day(21))
	if bytes.Equal(c.bundle(), first) {
		t.Fatal("no other certificate is made")
	}
	// The API server could not be told: the old one stays.
	rotate(day(22))
	told = c.bundle()
	c.known(day(22))
	rotate(day(22).Add(announced / 2))
	if !trusts(t, c, first, day(22)) {
		t.Error("the new one is used before the API server can know of it")
	}
	rotate(day(22).Add(announced))
	if trusts(t, c, first, day(22)) {
		t.Error("the new one is not used")
	}
	told = c.bundle()
	c.known(day(22).Add(announced))
	rotate(day(23))
	if bytes.Contains(told, first) {
		t.Error("the old authority is trusted for ever")
	}
}
