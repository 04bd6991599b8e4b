// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

const loadPods, loadNodes = 500, 50

// sized gives a pod the size of one of a cluster.
func sized(p *corev1.Pod) {
	for i := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", i), Value: "some value of it"})
	}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:metadata":{"f:labels":{}}}`, 30)),
		})
	}
}

// running are the states of a pod as the API server encodes them, from when it is made until its node says that it is ready.
func running(tb testing.TB, p *corev1.Pod, node string) (states [][]byte) {
	tb.Helper()
	for _, next := range []func(){
		func() {}, // made
		func() { p.Spec.NodeName = node },
		func() { p.Status.HostIP = "192.0.2.7" }, // known to its kubelet
		func() { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "198.51.100.23" },
		func() {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		},
	} {
		next()
		state, err := p.Marshal()
		controllertest.Must(tb, err)
		states = append(states, state)
	}
	return states
}

// processorTime is what this process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	controllertest.Must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkPods is what 500 pods cost, from when they are made until they are deleted: five states, which are decoded and shown to the ledger, and the
// question of the API server, whose binding is allowed. It is in processor time, garbage collection included. What the watch does besides and what the
// network takes is left out. Of it null is what a webhook costs that allows all and watches nothing.
func BenchmarkPods(b *testing.B) {
	ctrl.SetLogger(klog.Background())
	r := newRacks()
	for i := range loadNodes {
		r.node(nodeOf(fmt.Sprint("node-", i), 100_000))
	}
	states, questions := make([][][]byte, loadPods), make([][]byte, loadPods)
	for i := range loadPods {
		p, node := podOf(fmt.Sprint("web-", i), 100, of("web-1", "1"), sized), fmt.Sprint("node-", i%loadNodes)
		states[i], questions[i] = running(b, p, node), reviewOf(b, p.Name, node)
	}
	shown := func(state []byte) *corev1.Pod {
		p := new(corev1.Pod)
		controllertest.Must(b, p.Unmarshal(state))
		r.pod(p)
		return p
	}
	measure := func(b *testing.B, by admission.Handler, before, after func(states [][]byte)) {
		handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: by}, admission.StandaloneOptions{MetricsPath: "/bindings"})
		controllertest.Must(b, err)
		b.ReportAllocs()
		start := processorTime(b)
		for b.Loop() {
			for i := range loadPods {
				before(states[i])
				ask := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/bindings", bytes.NewReader(questions[i]))
				ask.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, ask)
				if !strings.Contains(answer.Body.String(), `"allowed":true`) {
					b.Fatal(answer.Body)
				}
				after(states[i])
			}
		}
		b.ReportMetric(float64((processorTime(b)-start).Microseconds())/float64(b.N*loadPods), "cpu-µs/pod")
	}
	b.Run("arbiter", func(b *testing.B) {
		measure(b, &Handler{Ledger: r.Ledger, Pods: &r.view, API: &r.view, Limits: r.Limits},
			func(states [][]byte) { shown(states[0]) },
			func(states [][]byte) {
				var p *corev1.Pod
				for _, state := range states[1:] {
					p = shown(state)
				}
				r.gone(p.UID)
			})
	})
	b.Run("null", func(b *testing.B) {
		nothing := func([][]byte) {}
		measure(b, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }), nothing, nothing)
	})
}
