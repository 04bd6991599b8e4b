// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
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
		return errorIf(len(h.Status.CurrentMetrics) == 0 || h.Status.DesiredReplicas != 6, "its status is %+v", h.Status)
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

// admit applies a file of manifests/admission for the story's namespace alone: its
// objects get names of their own, and its bindings a selector.
func (s *story) admit(file string) {
	s.Helper()
	applier, err := rig.NewApplier(world.config)
	s.must(err, "making an applier")
	list, err := rig.Decode(manifests.Files, file)
	s.must(err, "reading "+file)
	for _, obj := range list {
		obj.SetName(s.name + "." + obj.GetName())
		if name, found, _ := unstructured.NestedString(obj.Object, "spec", "policyName"); found {
			s.must(unstructured.SetNestedField(obj.Object, s.name+"."+name, "spec", "policyName"), "renaming")
			here := map[string]any{corev1.LabelMetadataName: s.ns}
			s.must(unstructured.SetNestedMap(obj.Object, here, "spec", "matchResources", "namespaceSelector", "matchLabels"), "binding")
		}
		s.must(applier.ApplyObject(s.ctx, obj, ""), "applying "+obj.GetName())
		s.Cleanup(func() {
			if err := world.objects.Delete(context.Background(), obj); err != nil {
				s.Errorf("deleting %s: %v", obj.GetName(), err)
			}
		})
	}
}

// try creates a pod in a dry run, and returns it as it would be.
func (s *story) try(placement, scheduler string) (*corev1.Pod, error) {
	return s.tryLabelled(placement, scheduler, nil)
}

// tryLabelled is try with more labels.
func (s *story) tryLabelled(placement, scheduler string, labels map[string]string) (*corev1.Pod, error) {
	template := s.template("tried", placement)
	template.Name, template.Spec.SchedulerName = "tried", scheduler
	maps.Copy(template.Labels, labels)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	return s.client.CoreV1().Pods(s.ns).Create(s.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// With the admission policy, a malformed annotation is refused when it is written, on a pod and on what makes pods.
func TestMalformedAnnotationIsRefusedAtCreation(t *testing.T) {
	s := begin(t, spread.core())
	s.admit("admission/annotations.yaml")
	s.until("the admission policy to be in force", func() error {
		_, err := s.try("sprd="+zoneLabel, s.scheduler)
		if err == nil {
			return errors.New("a malformed annotation is let pass")
		}
		for _, part := range []string{placementAnnotation, `"sprd=` + zoneLabel + `"`, "use spread=PROPERTY"} {
			if !strings.Contains(err.Error(), part) {
				s.Fatalf("the refusal does not say %q: %v", part, err)
			}
		}
		return nil
	})
	_, err := s.try("spread="+zoneLabel+";weight.a=2, pack=node.labels.rack;nodesWithoutKey=exclude", s.scheduler)
	s.must(err, "creating a pod whose annotation can be read")
	s.deploy("app", 0, "spread="+zoneLabel)
	is := get[appsv1.Deployment](s, "app")
	bad := is.DeepCopy()
	bad.Spec.Template.Annotations[placementAnnotation] = "spread=node.id"
	if err := world.objects.Patch(s.ctx, bad, client.MergeFrom(is)); err == nil || !strings.Contains(err.Error(), `"node.id"`) {
		s.Errorf("a Deployment is given a malformed annotation: %v", err)
	}
}

// The example makes Espalier the scheduler of a namespace.
func TestSchedulerNameByNamespace(t *testing.T) {
	s := begin(t, spread.core())
	rig.Since(t, world.client, rig.MutatingSince, "policies that change objects")
	s.admit("admission/scheduler-name.yaml")
	s.alter(named[corev1.Namespace](s, s.ns), `{"metadata":{"labels":{"espalier.dev/default-scheduler":"true"}}}`)
	s.until("the admission policy to be in force", func() error {
		pod, err := s.try("", "")
		if err == nil && pod.Spec.SchedulerName != rig.SchedulerName {
			err = fmt.Errorf("the pod is for %s", pod.Spec.SchedulerName)
		}
		return err
	})
	// Espalier's own pods are for the scheduler that runs already: for itself it could never start.
	for _, name := range []string{rig.SchedulerName, rig.ControllerName} {
		own, err := s.tryLabelled("", "", map[string]string{"app.kubernetes.io/name": name})
		s.must(err, "creating a pod as of "+name)
		if own.Spec.SchedulerName != corev1.DefaultSchedulerName {
			s.Errorf("a pod of %s itself is for %s, want %s", name, own.Spec.SchedulerName, corev1.DefaultSchedulerName)
		}
	}
	pod, err := s.try("", "another")
	if err != nil || pod.Spec.SchedulerName != "another" {
		s.Errorf("a pod with a scheduler of its own: %v, %v", pod.Spec.SchedulerName, err)
	}
}
