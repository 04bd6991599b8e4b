// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// metricsAPI is where the horizontal pod autoscaler reads how much pods use. Nobody serves it on a devcluster.
const metricsAPI = "/apis/metrics.k8s.io/v1beta1"

// metricsWindow is how long a pod has to be ready before the metrics know what it uses. The autoscaler leaves samples of a shorter time out.
const metricsWindow = time.Second

// playedMetrics is that API for the story's namespace. The ready pods of an app share a load, as they do behind a Service. A pod takes its share
// when it has been ready for the window: if the share of a pod were taken off the others while the autoscaler still leaves that pod out, it would see
// less load than there is, and scale down.
type playedMetrics struct {
	client *story
	load   atomic.Int64 // thousandths of a CPU
	asked  atomic.Int64 // how often somebody has asked for them
}

// playMetrics serves the API until the story ends.
func (s *story) playMetrics() *playedMetrics {
	s.Helper()
	if world.auditLog == "" {
		s.Skip("not told here: the API server of another cluster does not reach the metrics that the story plays")
	}
	m := &playedMetrics{client: s}
	server := httptest.NewTLSServer(m)
	s.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	s.must(err, "reading the address of the metrics")
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	s.must(err, "reading the port of the metrics")
	s.make(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	// It goes before the server closes: an API that does not answer keeps namespaces from being deleted.
	s.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": s.ns, "name": "metrics", "port": port},
		},
	}})
	s.until("the metrics to be served", func() error {
		_, err := s.client.Discovery().RESTClient().Get().AbsPath(metricsAPI).DoRaw(s.ctx)
		return err
	})
	return m
}

// ServeHTTP answers the API server.
func (m *playedMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
		"resources": []any{map[string]any{"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": []string{"get", "list"}}},
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case metricsAPI:
	case metricsAPI + "/namespaces/" + m.client.ns + "/pods":
		m.asked.Add(1)
		items, err := m.pods(r.Context(), r.URL.Query().Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer = map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": items}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (m *playedMetrics) pods(ctx context.Context, selector string) ([]any, error) {
	list, err := m.client.client.CoreV1().Pods(m.client.ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	at := time.Now().UTC().Truncate(time.Second) // as the samples say it, and the pods' conditions
	var ready []string
	for i := range list.Items {
		p := &list.Items[i]
		since := readySince(p)
		if p.DeletionTimestamp == nil && !since.IsZero() && !at.Before(since.Add(metricsWindow)) {
			ready = append(ready, p.Name)
		}
	}
	items := make([]any, 0, len(ready))
	for _, name := range ready {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": name, "namespace": m.client.ns}, "timestamp": at.Format(time.RFC3339), "window": metricsWindow.String(),
			"containers": []any{map[string]any{"name": "app", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", int(m.load.Load())/len(ready))}}},
		})
	}
	return items, nil
}

// autoscaled gives an app an autoscaler that wants its pods to use half of what they ask for.
func (s *story) autoscaled(app string, least, most int32) {
	s.Helper()
	s.make(&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: app},
			MinReplicas:    &least, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32)}},
		},
	})
}

// The horizontal pod autoscaler of Kubernetes scales a Deployment up and down while pods of it are moved. What it asks for is what there is in
// the end, each Move ends, and nobody else writes the number of replicas. That there is a pod more for a while it takes for no reason
// to scale.
func TestAutoscalerScalesWhilePodsAreMoved(t *testing.T) {
	s := begin(t, moves, byZone)
	metrics := s.playMetrics()
	s.zones(20, 2, 2)
	busy := func(pods int) { metrics.load.Store(int64(pods * podMilliCPU / 2)) }
	busy(6)
	s.deploy("app", 6, "")
	s.patch("app", `{"spec":{"minReadySeconds":4}}`)
	s.settled("app", 6)
	s.autoscaled("app", 4, 12)
	becomes(s, "app", "the autoscaler to see what pods use", func(h *autoscalingv2.HorizontalPodAutoscaler) error {
		if len(h.Status.CurrentMetrics) == 0 || h.Status.DesiredReplicas != 6 {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return nil
	})
	stop := s.neverBelow("app", 4)
	generation := s.generation("app")
	// Two looks of the autoscaler at one pod more, which asks once each time. With two more, both could be evicted between its look at the metrics and its
	// look at the pods: six that carry the load of eight are one too many for it.
	s.movedWhile("app", 6, 1, func() {
		before := metrics.asked.Load()
		s.until("the autoscaler to look twice", func() error {
			if n := metrics.asked.Load() - before; n < 3 { // one look may have begun before
				return fmt.Errorf("it has asked %d times", n)
			}
			return nil
		})
	})
	if now := s.generation("app"); now != generation {
		t.Errorf("the Deployment has been changed %d times though the load is the same", now-generation)
	}
	// Far beyond the most and the least that it may ask for: within a tenth of what it wants an autoscaler does nothing, and one pod more is
	// almost that.
	s.movedWhile("app", 6, 2, func() { busy(24) })
	s.settled("app", 12)
	s.movedWhile("app", 12, 2, func() { busy(2) })
	s.settled("app", 4)
	stop()

	writes, err := rig.Writes(world.auditLog)
	s.must(err, "counting writes")
	by := make(map[string]int)
	for i := range writes {
		if w := &writes[i]; w.Object.Namespace == s.ns && w.Object.Resource == "deployments" && w.Done() {
			by[strings.Join([]string{w.User.Username, w.Verb, w.Object.Subresource}, " ")]++
		}
	}
	s.Logf("the Deployment was written by: %v", by)
	for who := range by {
		if strings.Contains(who, "espalier") {
			t.Errorf("%s has written the Deployment", who)
		}
	}
}
