// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// running are the states of a pod as the watch shows them, from when it is made until its node says that it runs. Its size is that of a pod of
// a cluster, whose kubelets say what they have given to containers.
func running(i int, node string) (states []client.Object) {
	name := fmt.Sprintf("web-5f6d8c7b9-%05d", i)
	p := podOf(name, 100, func(p *corev1.Pod) {
		p.UID = types.UID(fmt.Sprintf("3f0b9d2e-7c1a-4b7e-9a51-%012d", i))
		p.GenerateName, p.CreationTimestamp, p.ResourceVersion, p.Generation = "web-5f6d8c7b9-", metav1.Unix(1_760_000_000, 0), "100", 1
		p.Labels = map[string]string{"app": "web", "pod-template-hash": "5f6d8c7b9", "team": "shop"}
		p.Annotations = map[string]string{"example.com/scrape": "true", "example.com/port": "8080"}
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f6d8c7b9", UID: "0d9c6a1b-55aa-4fd2-8b4c-5d8a1f3c7e21", Controller: new(true), BlockOwnerDeletion: new(true),
		}}
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "registry.example.com/shop/web:v1.27.3", corev1.PullIfNotPresent
		p.Spec.Containers[0].TerminationMessagePath, p.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessagePathDefault, corev1.TerminationMessageReadFile
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
		for e := range 6 {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", e), Value: "some value of it"})
		}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x7k2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			},
		}}}}
		p.Spec.RestartPolicy, p.Spec.DNSPolicy, p.Spec.ServiceAccountName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default"
		p.Spec.TerminationGracePeriodSeconds, p.Spec.Priority, p.Spec.EnableServiceLinks = new(int64(30)), new(int32(0)), new(true)
		p.Spec.Tolerations = []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		}
		p.Status.Phase, p.Status.QOSClass = corev1.PodPending, corev1.PodQOSBurstable
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:metadata":{"f:labels":{}}}`, 30))},
			{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:status":{"f:phase":{}}}`, 30))},
		}
	})
	is := func(kind corev1.PodConditionType, status corev1.ConditionStatus) {
		for c := range p.Status.Conditions {
			if p.Status.Conditions[c].Type == kind {
				p.Status.Conditions[c].Status = status
				return
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: p.CreationTimestamp})
	}
	for _, next := range []func(){
		func() {}, // made
		func() { // bound
			p.Spec.NodeName = node
			is(corev1.PodScheduled, corev1.ConditionTrue)
		},
		func() { // known to its kubelet
			p.Status.HostIP, p.Status.StartTime = "192.0.2.7", new(p.CreationTimestamp)
			is(corev1.PodInitialized, corev1.ConditionTrue)
			is(corev1.PodReady, corev1.ConditionFalse)
			is(corev1.ContainersReady, corev1.ConditionFalse)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: p.Spec.Containers[0].Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
		},
		func() { // running
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "198.51.100.23", []corev1.PodIP{{IP: "198.51.100.23"}}
			s := &p.Status.ContainerStatuses[0]
			s.ContainerID, s.ImageID = "containerd://9c1185a5c5e9fc54612808977ee8f548b2258d31", "registry.example.com/shop/web@sha256:45b23dee08af5e43a7fea6c4cf9c25cc"
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}
			s.Started, s.AllocatedResources, s.Resources = new(true), p.Spec.Containers[0].Resources.Requests, &p.Spec.Containers[0].Resources
		},
		func() { // ready
			p.Status.ContainerStatuses[0].Ready = true
			is(corev1.PodReady, corev1.ConditionTrue)
			is(corev1.ContainersReady, corev1.ConditionTrue)
		},
	} {
		next()
		states = append(states, p.DeepCopy())
	}
	return states
}

// reviewOf is what the API server posts about the binding of a pod.
func reviewOf(tb testing.TB, pod client.Object, node string) []byte {
	tb.Helper()
	binding, err := json.Marshal(&corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.GetNamespace(), Name: pod.GetName(), UID: pod.GetUID()},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
	if err != nil {
		tb.Fatal(err)
	}
	pods, bindings := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, metav1.GroupVersionKind{Version: "v1", Kind: "Binding"}
	review, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: bindings, Resource: pods, SubResource: "binding", RequestKind: &bindings, RequestResource: &pods, RequestSubResource: "binding",
			Name: pod.GetName(), Namespace: pod.GetNamespace(), Operation: admissionv1.Create, DryRun: new(false),
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:espalier-scheduler", UID: "6b9f6e0e-5a0b-4d9c-9f0a-0c6a3c1f5d11",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
				Extra: map[string]authenticationv1.ExtraValue{
					"authentication.kubernetes.io/credential-id": {"JTI=7ee52be0-9045-4653-aa5e-0da57b8dccdc"}, "authentication.kubernetes.io/pod-name": {"espalier-scheduler-6d5c7b9f4-2xk7p"},
				},
			},
			Object: runtime.RawExtension{Raw: binding}, Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return review
}

// processorTime is what this process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// load is many pods at once: their states in the watch, and the questions about their bindings.
type load struct {
	made, after, gone, questions [][]byte
	last                         client.ObjectKey
}

const loadPods, loadNodes = 500, 50

func newLoad(tb testing.TB) *load {
	tb.Helper()
	l, s := &load{}, newStream(tb)
	for i := range loadPods {
		node := fmt.Sprint("node-", i%loadNodes)
		states := running(i, node)
		l.made = append(l.made, s.events(tb, watch.Added, states[0]))
		l.after = append(l.after, s.events(tb, watch.Modified, states[1:]...))
		l.gone = append(l.gone, s.events(tb, watch.Deleted, states[len(states)-1]))
		l.questions = append(l.questions, reviewOf(tb, states[0], node))
		l.last = client.ObjectKeyFromObject(states[0])
	}
	return l
}

// ask asks about all bindings, which are to be allowed.
func (l *load) ask(b *testing.B, handler http.Handler) {
	b.Helper()
	for _, q := range l.questions {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/bindings", bytes.NewReader(q))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !bytes.Contains(w.Body.Bytes(), []byte(`"allowed":true`)) {
			b.Fatal(w.Body)
		}
	}
}

// measure does something as often as the benchmark likes, and reports its processor time for each pod.
func measure(b *testing.B, do func()) {
	b.Helper()
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N*loadPods), "cpu-µs/pod")
}

// following is an arbiter that follows a stream, with what it knows.
func following(ctx context.Context, b *testing.B, s *stream, c cache.Cache) (*Ledger, http.Handler) {
	b.Helper()
	go func() {
		for i := range loadNodes {
			n := nodeOf(fmt.Sprint("node-", i), 100_000)
			n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("64Gi")
			send(b, s.nodes, s.events(b, watch.Added, n))
		}
		send(b, s.nodes, s.listed(b, &corev1.Node{}))
	}()
	go func() { send(b, s.pods, s.listed(b, &corev1.Pod{})) }()
	arbiter := New(nil, c, clock.RealClock{}, Options{Schedulers: []string{"espalier-scheduler"}})
	ledger := NewLedger(arbiter.Clock)
	if err := ledger.follow(ctx, c); err != nil {
		b.Fatal(err)
	}
	handler, err := arbiter.handler(ledger)
	if err != nil {
		b.Fatal(err)
	}
	return ledger, handler
}

// BenchmarkPods is what 500 pods cost, from when they are made until they are deleted: five states in the watch, and the question of the API server, whose
// binding is allowed. It is in processor time, garbage collection included. What the network takes is left out: TLS and HTTP/2.
// Of it null is what a webhook costs that allows all and watches nothing.
func BenchmarkPods(b *testing.B) {
	ctrl.SetLogger(klog.Background())
	l := newLoad(b)
	b.Run("arbiter", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		s := newStream(b)
		c := s.cache(ctx, b)
		stopped := make(chan error, 1)
		go func() { stopped <- c.Start(ctx) }()
		defer func() {
			cancel()
			_, _ = s.pods.Close(), s.nodes.Close() // which have no error
			if err := <-stopped; err != nil {
				b.Error(err)
			}
		}()
		ledger, handler := following(ctx, b, s, c)
		until := func(what string, is func() bool) {
			for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					b.Fatal(what)
				}
			}
		}
		shown := func() bool { return c.Get(ctx, l.last, &corev1.Pod{}, client.UnsafeDisableDeepCopy) == nil }
		placed := func() int {
			ledger.mu.Lock()
			defer ledger.mu.Unlock()
			return len(ledger.seen)
		}
		measure(b, func() {
			send(b, s.pods, l.made...)
			until("pods are not shown", shown)
			l.ask(b, handler)
			send(b, s.pods, l.after...)
			send(b, s.pods, l.gone...)
			until("pods are not gone", func() bool { return !shown() && placed() == 0 })
		})
	})
	b.Run("null", func(b *testing.B) {
		hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })}
		measure(b, func() { l.ask(b, hook) })
	})
}
