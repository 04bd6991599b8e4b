// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// apiWith is an API server, or a cache, with objects.
func apiWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return controllertest.Builder(t, objects...).WithIndex(&corev1.Pod{}, byWorkload, func(o client.Object) []string {
		return []string{identifier.Identify(o.(*corev1.Pod)).Workload.String()}
	}).Build()
}

// handlerOf is a handler that knows a node, and reads pods by a cache.
func handlerOf(n *corev1.Node, pods client.Client) *Handler {
	return &Handler{Ledger: ledgerOf(n), Pods: pods, API: pods, Limits: &Limits{Cache: pods}}
}

// asked is the API server's question about the binding of a pod to a node.
func asked(tb testing.TB, pod, node string, change ...func(*corev1.Binding, *admissionv1.AdmissionRequest)) admission.Request {
	tb.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod, UID: types.UID(pod)}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Name: pod}}
	for _, c := range change {
		c(binding, &r.AdmissionRequest)
	}
	raw, err := json.Marshal(binding)
	controllertest.Must(tb, err)
	if r.Object.Raw == nil {
		r.Object.Raw = raw
	}
	return r
}

// reviewOf is what the API server posts about the binding of a pod to a node.
func reviewOf(tb testing.TB, pod, node string) []byte {
	tb.Helper()
	request := asked(tb, pod, node).AdmissionRequest
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request})
	controllertest.Must(tb, err)
	return body
}

func TestHandle(t *testing.T) {
	broken := interceptor.NewClient(apiWith(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("etcd is away")
		},
	})
	gates := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }
	for name, tc := range map[string]struct {
		request admission.Request
		api     client.Reader
		refused string // "" for none
		unseen  int
	}{
		"room":                        {asked(t, "p", "n"), nil, "", 1},
		"room, without effect":        {asked(t, "p", "n", func(_ *corev1.Binding, r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }), nil, "", 0},
		"no room":                     {asked(t, "large", "n"), nil, "node n has no room for pod ns/large: of cpu the pod requests 2, and 1 of 1 are free", 0},
		"a node that nobody knows of": {asked(t, "p", "gone"), nil, "", 1},
		"by an older way":             {asked(t, "p", "n", func(_ *corev1.Binding, r *admissionv1.AdmissionRequest) { r.Name = "" }), nil, "", 1},
		"without a UID":               {asked(t, "large", "n", func(b *corev1.Binding, _ *admissionv1.AdmissionRequest) { b.UID = "" }), nil, "no room", 0},
		// A cache may still show one of that name that is gone, as of a StatefulSet.
		"without a UID, and bound to the watch": {asked(t, "bound", "n", func(b *corev1.Binding, _ *admissionv1.AdmissionRequest) { b.UID = "" }), apiWith(t, podOf("bound", 2000)), "no room", 0},
		"no kind of target":                     {asked(t, "large", "n", func(b *corev1.Binding, _ *admissionv1.AdmissionRequest) { b.Target.Kind = "" }), nil, "no room", 0},
		"not to a node":                         {asked(t, "large", "n", func(b *corev1.Binding, _ *admissionv1.AdmissionRequest) { b.Target.Kind = "Cloud" }), nil, "", 0},
		"no binding":                            {asked(t, "large", "n", func(_ *corev1.Binding, r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("{") }), nil, "", 0},
		"bound already":                         {asked(t, "bound", "n"), nil, "", 0},
		"a pod that is gone":                    {asked(t, "gone", "n"), nil, "", 0},
		"another pod of that name":              {asked(t, "large", "n", func(b *corev1.Binding, _ *admissionv1.AdmissionRequest) { b.UID = "older" }), nil, "", 0},
		"a pod that the watch has not shown":    {asked(t, "new", "n"), apiWith(t, podOf("new", 2000)), "node n has no room for pod ns/new", 0},
		// The API server refuses it, and the room is not kept for it.
		"a pod with gates":                 {asked(t, "gated", "n"), nil, "", 0},
		"gates that the watch still has":   {asked(t, "gated", "n"), apiWith(t, podOf("gated", 500)), "", 1},
		"gates that are gone, and no room": {asked(t, "gated", "n"), apiWith(t, podOf("gated", 2000)), "node n has no room for pod ns/gated", 0},
		// VV10: what could not be fetched counts as a conflict.
		"a pod that cannot be read": {asked(t, "new", "n"), broken, "node n may have no room for pod ns/new: the pod could not be read: etcd is away", 0},
	} {
		t.Run(name, func(t *testing.T) {
			pods := apiWith(t, podOf("p", 500), podOf("large", 2000), podOf("gated", 500, gates), onNode(podOf("bound", 5000), "other"))
			h := handlerOf(nodeOf("n", 1000), pods)
			if tc.api != nil {
				h.API = tc.api
			}
			got := h.Handle(t.Context(), tc.request)
			switch {
			case tc.refused == "" && !got.Allowed:
				t.Errorf("it is refused: %v", got.Result)
			case tc.refused != "" && (got.Allowed || !strings.Contains(got.Result.Message, tc.refused)):
				t.Errorf("allowed: %t, result %v; want it refused with %q", got.Allowed, got.Result, tc.refused)
			}
			if n := h.Ledger.Unseen(); n != tc.unseen {
				t.Errorf("%d pods are to come, want %d", n, tc.unseen)
			}
		})
	}
}

// A scheduler writes which devices a pod has got, and binds it at once. The watch shows that while the binding waits.
func TestDevicesAreShownLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gpu = "example.com/gpu"
		n := nodeOf("n", 1000)
		n.Status.Allocatable[gpu] = resource.MustParse("0") // as where a device plugin was, and claims have taken its place
		p := podOf("p", 100, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1") })
		pods := apiWith(t, p)
		h := handlerOf(n, pods)
		if h.Handle(t.Context(), asked(t, "p", "n")).Allowed {
			t.Error("a pod without devices is admitted to a node without devices")
		}
		shown := make(chan error, 1)
		time.AfterFunc(catchUp/2, func() {
			var now corev1.Pod
			err := pods.Get(t.Context(), client.ObjectKeyFromObject(p), &now)
			now.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: gpu, RequestName: "r"}},
			}
			shown <- errors.Join(err, pods.Status().Update(t.Context(), &now))
		})
		got := h.Handle(t.Context(), asked(t, "p", "n"))
		controllertest.Must(t, <-shown)
		if !got.Allowed {
			t.Errorf("a pod that has its devices is refused: %v", got.Result)
		}
	})
}

// vanishing shows a pod once. Then it is gone, and the ledger is told.
type vanishing struct {
	client.Reader
	gone func()
}

func (v vanishing) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	defer v.gone()
	return v.Reader.Get(ctx, key, o, opts...)
}

// A pod may be deleted while its binding is looked at. No room is kept for it then, and for none that the watch has not shown yet.
func TestDeletedWhileItIsBound(t *testing.T) {
	for name, tc := range map[string]struct {
		inCache, deleted bool
		unseen           int
	}{
		"deleted": {true, true, 0}, "not deleted": {true, false, 1}, "not shown yet": {false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := podOf("p", 500)
			ledger, api, cached := ledgerOf(nodeOf("n", 1000)), apiWith(t, p), apiWith(t)
			if tc.inCache {
				cached = apiWith(t, p)
			}
			h := &Handler{Ledger: ledger, API: api, Limits: &Limits{Cache: cached}, Pods: vanishing{cached, func() {
				if tc.deleted && cached.Delete(t.Context(), p.DeepCopy()) == nil {
					ledger.RemovePod(p.UID)
				}
			}}}
			if got := h.Handle(t.Context(), asked(t, "p", "n")); !got.Allowed {
				t.Errorf("it is refused: %v", got.Result)
			}
			if n := ledger.Unseen(); n != tc.unseen {
				t.Errorf("%d pods are to come, want %d", n, tc.unseen)
			}
		})
	}
}

// A scheduler knows the refusal by its cause, as the API server passes it on.
func TestRefusalIsKnown(t *testing.T) {
	got := handlerOf(nodeOf("n", 1000), apiWith(t, podOf("large", 2000))).Handle(t.Context(), asked(t, "large", "n"))
	if got.Allowed {
		t.Fatal("it is admitted")
	}
	err := webhookerrors.ToStatusErr("bindings.espalier.dev", got.Result)
	cause, known := apierrors.StatusCause(err, clusterview.RefusedBinding)
	if !known || cause.Message != "n" || !apierrors.IsForbidden(err) {
		t.Errorf("its cause is %v, and the error %v", cause, err)
	}
	if want := `admission webhook "bindings.espalier.dev" denied the request: node n has no room for pod ns/large: of cpu`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("people are told %q", err)
	}
}

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
