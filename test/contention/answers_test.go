// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// mishap is what becomes of a binding on its way. It calls next to have the API server make it.
type mishap struct {
	name string
	// times is how often it happens to a pod.
	times int
	do    func(w http.ResponseWriter, r *http.Request, next func() *httptest.ResponseRecorder)
}

// abort ends the connection without an answer.
func abort(http.ResponseWriter, *http.Request, func() *httptest.ResponseRecorder) {
	panic(http.ErrAbortHandler)
}

// says answers with an error of the API server.
func says(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func passOn(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// mishaps are those that the pods of a story meet, in turn.
var mishaps = []mishap{
	{"none", 0, nil},
	{"denied", 2, func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
		says(w, apierrors.NewForbidden(metav1.Unversioned.WithResource("pods").GroupResource(), "", fmt.Errorf("not today")).Status())
	}},
	{"no room", 2, func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
		says(w, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "the node has no room",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "espalier.dev/refused-binding"}}},
		})
	}},
	{"delayed", 1, func(w http.ResponseWriter, _ *http.Request, next func() *httptest.ResponseRecorder) {
		time.Sleep(3 * time.Second)
		passOn(w, next())
	}},
	{"made twice", 1, func(w http.ResponseWriter, _ *http.Request, next func() *httptest.ResponseRecorder) {
		next()
		passOn(w, next())
	}},
	{"made, and not answered", 1, func(w http.ResponseWriter, r *http.Request, next func() *httptest.ResponseRecorder) {
		next()
		abort(w, r, next)
	}},
	{"not made, and not answered", 2, abort},
}

// meddler stands between a scheduler and the API server.
type meddler struct {
	mu sync.Mutex // guards met
	// met is how often a mishap has happened to a pod.
	met map[string]int
}

// startMeddler starts one, and returns a configuration by which it is reached.
func (s *story) startMeddler() *rest.Config {
	s.Helper()
	target, err := url.Parse(world.config.Host)
	s.must(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(world.config))
	s.must(err)
	behind := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	m := &meddler{met: make(map[string]int)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if r.Method != http.MethodPost || parts[len(parts)-1] != "binding" {
			behind.ServeHTTP(w, r)
			return
		}
		m.meet(w, r, parts[len(parts)-2], behind)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := rest.AnonymousClientConfig(world.config)
	config.Host, config.TLSClientConfig = server.URL, rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	return config
}

func (m *meddler) meet(w http.ResponseWriter, r *http.Request, pod string, behind http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	next := func() *httptest.ResponseRecorder {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, again)
		return answer
	}
	is := mishapOf(pod)
	m.mu.Lock()
	happens := m.met[pod] < is.times
	m.met[pod]++
	m.mu.Unlock()
	if !happens {
		passOn(w, next())
		return
	}
	is.do(w, r, next)
}

// mishapOf is that of a pod, by the number at the end of its name.
func mishapOf(pod string) mishap {
	var n int
	if _, err := fmt.Sscanf(pod[strings.LastIndex(pod, "-")+1:], "%d", &n); err != nil {
		return mishaps[0]
	}
	return mishaps[n%len(mishaps)]
}

// A binding is denied, refused for want of room, delayed, made twice, or never answered, whether it was made or not: no pod is lost, none is announced for
// two nodes, and what the scheduler counts is what is there.
func TestAnswersThatGoWrong(t *testing.T) {
	s := begin(t)
	s.nodes(9, 50)
	kubeconfig := filepath.Join(world.dir, s.name+".kubeconfig")
	s.must(rig.WriteSchedulerKubeconfig(s.ctx, s.startMeddler(), world.client, kubeconfig))
	// Before the scheduler, whose first pod is one of those that are seen.
	seen, stop, err := rig.WatchBindings(s.ctx, s.client, s.name)
	s.must(err)
	defer stop()
	ours := s.start("ours", world.ours, kubeconfig, rig.SchedulerName)
	const pods = 210
	s.pods(pods, rig.SchedulerName)
	bound := func(n int) {
		s.Helper()
		s.until(fmt.Sprintf("%d pods to be bound", n), ours, func() error {
			if all, bound := seen.Bound(); bound < n {
				return fmt.Errorf("%d of %d are", bound, all)
			}
			return nil
		})
	}
	bound(pods + 1)
	// What comes next makes even what is there, if every pod counts once.
	s.each(90, func(ctx context.Context, i int) error {
		return s.create(ctx, s.pod(fmt.Sprintf("even-%d", i*len(mishaps)), rig.SchedulerName))
	})
	bound(pods + 91)
	list, err := s.client.CoreV1().Pods(s.name).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	counts := map[string]int{}
	for i := range list.Items {
		counts[list.Items[i].Spec.NodeName]++
	}
	for node, n := range counts {
		if n != 33 && n != 34 {
			t.Errorf("node %s has %d of 300 pods on 9 nodes: %v", node, n, counts)
		}
	}
	twice, err := rig.AnnouncedTwice(s.ctx, s.client, s.name, pods, timeout)
	s.must(err)
	for _, of := range twice {
		t.Error(of)
	}
}

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
