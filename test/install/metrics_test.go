// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// ofKind are the objects of a kind among rendered ones.
func ofKind[T any](t *testing.T, kind string, objects []object) (found []T) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var is T
		fatal(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &is))
		found = append(found, is)
	}
	return found
}

// metricsPort is the port at which the pods of a Deployment serve their metrics.
func metricsPort(t *testing.T, d *appsv1.Deployment) int32 {
	t.Helper()
	for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
		if p.Name == "https" {
			return p.ContainerPort
		}
	}
	t.Fatalf("Deployment %s names no port https", d.Name)
	return 0
}

// controllerServesItsMetrics wants the controller to serve its metrics at the port that its pod names: alerts and dashboard are about
// what it counts too.
func controllerServesItsMetrics(t *testing.T, objects []object) {
	t.Helper()
	for _, d := range ofKind[appsv1.Deployment](t, "Deployment", objects) {
		if !strings.HasSuffix(d.Name, "-controller") {
			continue
		}
		if flag := fmt.Sprintf("--metrics-bind-address=:%d", metricsPort(t, &d)); !slices.Contains(d.Spec.Template.Spec.Containers[0].Command, flag) {
			t.Errorf("the command is %q, without %s", d.Spec.Template.Spec.Containers[0].Command, flag)
		}
	}
}

// TestPrometheusReachesMetrics wants what Prometheus goes by to lead it to the pods of each Deployment, and of no other.
func TestPrometheusReachesMetrics(t *testing.T) {
	set := []string{
		"--set", "serviceMonitor.enabled=true", "--set", "networkPolicy.enabled=true", "--set", "controller.port=8444",
		"--set-json", `networkPolicy.metricsFrom=[{"namespaceSelector":{}}]`,
	}
	for want, args := range map[int][]string{2: set, 1: append(slices.Clone(set), "--set", "controller.enabled=false")} {
		objects := decode(t, template(t, "batch", "espalier-system", args...))
		deployments := ofKind[appsv1.Deployment](t, "Deployment", objects)
		services, monitors := ofKind[corev1.Service](t, "Service", objects), ofKind[monitoringv1.ServiceMonitor](t, "ServiceMonitor", objects)
		policies := ofKind[networkingv1.NetworkPolicy](t, "NetworkPolicy", objects)
		if len(deployments) != want || len(services) != want || len(monitors) != want || len(policies) != want {
			t.Fatalf("there are %d Deployments, %d Services, %d ServiceMonitors and %d policies, want %d of each", len(deployments), len(services), len(monitors), len(policies), want)
		}
		for i := range deployments {
			d, pods := &deployments[i], labels.Set(deployments[i].Spec.Template.Labels)
			var ports []int32
			for _, s := range services {
				if labels.SelectorFromSet(s.Spec.Selector).Matches(pods) && s.Spec.Ports[0].TargetPort.String() == "https" && monitored(t, monitors, &s) == 1 {
					ports = append(ports, s.Spec.Ports[0].Port)
				}
			}
			if !slices.Equal(ports, []int32{metricsPort(t, d)}) {
				t.Errorf("the metrics of %s are looked for at %v, want %d", d.Name, ports, metricsPort(t, d))
			}
			let := 0
			for _, p := range policies {
				if selects(t, &p.Spec.PodSelector, pods) && len(p.Spec.Ingress) == 1 && p.Spec.Ingress[0].Ports[0].Port.String() == "https" {
					let++
				}
			}
			if let != 1 {
				t.Errorf("%d network policies let Prometheus through to %s", let, d.Name)
			}
		}
	}
}

// TestNetworkPolicyLetsInWhoAsks wants the network policy of the controller to let in who reads metrics where there is one, and the API server where it asks
// about bindings.
func TestNetworkPolicyLetsInWhoAsks(t *testing.T) {
	const arbiter, metrics = "controller.arbiter.enabled=true", `networkPolicy.metricsFrom=[{"namespaceSelector":{}}]`
	for _, tc := range []struct{ set, want []string }{
		{nil, nil},
		{[]string{arbiter}, []string{"arbiter"}},
		{[]string{metrics}, []string{"https"}},
		{[]string{arbiter, metrics}, []string{"https", "arbiter"}},
	} {
		args := []string{"--set", "networkPolicy.enabled=true"}
		for _, set := range tc.set {
			args = append(args, "--set-json", set)
		}
		for _, p := range ofKind[networkingv1.NetworkPolicy](t, "NetworkPolicy", decode(t, template(t, "batch", "espalier-system", args...))) {
			if !strings.HasSuffix(p.Name, "-controller") {
				continue
			}
			var ports []string
			for _, rule := range p.Spec.Ingress {
				if port := rule.Ports[0].Port.String(); port == "arbiter" && len(rule.From) > 0 || port == "https" && len(rule.From) == 0 {
					t.Errorf("with %q port %s is for %v", tc.set, port, rule.From)
				}
				ports = append(ports, rule.Ports[0].Port.String())
			}
			if !slices.Equal(ports, tc.want) {
				t.Errorf("with %q it lets others in at %q, want %q", tc.set, ports, tc.want)
			}
		}
	}
}

// monitored counts the monitors that look at a Service.
func monitored(t *testing.T, monitors []monitoringv1.ServiceMonitor, s *corev1.Service) (n int) {
	t.Helper()
	for _, m := range monitors {
		if selects(t, &m.Spec.Selector, labels.Set(s.Labels)) && m.Spec.Endpoints[0].Port == s.Spec.Ports[0].Name {
			n++
		}
	}
	return n
}

func selects(t *testing.T, selector *metav1.LabelSelector, is labels.Set) bool {
	t.Helper()
	by, err := metav1.LabelSelectorAsSelector(selector)
	fatal(t, err)
	return by.Matches(is)
}

// withoutProfile are the metrics of the reference that have no label for the profile: with a matcher for the profile, their alerts would never fire.
func withoutProfile(t *testing.T) (names []string) {
	t.Helper()
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	fatal(t, err)
	for line := range strings.Lines(string(reference)) {
		cells := strings.Split(line, " | ")
		if name, ok := strings.CutPrefix(cells[0], "| `espalier_"); ok && !strings.Contains(cells[2], "`profile`") {
			names = append(names, "espalier_"+strings.TrimSuffix(name, "`"))
		}
	}
	return names
}

var (
	ourMetric   = regexp.MustCompile(`\b(?:espalier|scheduler)_[a-z_]+`)
	ofHistogram = regexp.MustCompile(`_(bucket|sum|count)$`)
	matched     = regexp.MustCompile(`\b(?:espalier|scheduler)_[a-z_]+\{profile=~"`)
)

// TestAlertsAreOfTheRelease wants the alerts of each of two releases to be about its own
// profiles, and to be the shipped ones otherwise: a Prometheus sees the metrics of both.
func TestAlertsAreOfTheRelease(t *testing.T) {
	shipped, unlabelled := shippedAlerts(t), withoutProfile(t)
	for release, tc := range map[string]struct {
		args           []string
		matcher, lease string
	}{
		"espalier": {nil, `profile=~"espalier-scheduler"`, "espalier-scheduler"},
		// What is counted for others is no profile of the release's.
		"batch": {
			[]string{"--set-json", `scheduler.profiles=[{"schedulerName":"batch.v1"},{"schedulerName":"pack"}]`, "--set", "controller.schedulerNames={espalier-scheduler}"},
			`profile=~"batch\\.v1|pack"`, "batch-espalier-scheduler",
		},
	} {
		t.Run(release, func(t *testing.T) {
			rendered := ruleOf(t, template(t, release, "espalier-system", append(tc.args, "--set", "prometheusRule.enabled=true")...))
			if got, want := slices.Sorted(maps.Keys(rendered)), slices.Sorted(maps.Keys(shipped)); !slices.Equal(got, want) {
				t.Fatalf("the alerts are %v, want %v", got, want)
			}
			for name, expr := range rendered {
				metrics, ours := 0, len(matched.FindAllString(expr, -1))
				for _, metric := range ourMetric.FindAllString(expr, -1) {
					if !slices.Contains(unlabelled, ofHistogram.ReplaceAllString(metric, "")) {
						metrics++
					}
				}
				if ours != metrics || strings.Count(expr, tc.matcher) != metrics {
					t.Errorf("%s: %d of its metrics have to be matched by %s:\n%s", name, metrics, tc.matcher, expr)
				}
				plain := strings.NewReplacer("{"+tc.matcher+",", "{", "{"+tc.matcher+"}", "", `"`+tc.lease+`"`, `"espalier-scheduler"`).Replace(expr)
				if plain != shipped[name] {
					t.Errorf("%s: without what is the release's it is\n%s\nand not the shipped\n%s", name, plain, shipped[name])
				}
			}
		})
	}
}

// TestAlertsCanBeLeftOut leaves out each of the shipped alerts.
func TestAlertsCanBeLeftOut(t *testing.T) {
	names := strings.Join(slices.Collect(maps.Keys(shippedAlerts(t))), ",")
	if left := ruleOf(t, template(t, "espalier", "espalier-system", "--set", "prometheusRule.enabled=true,prometheusRule.disabled={"+names+"}")); len(left) > 0 {
		t.Errorf("these alerts are left: %v", left)
	}
}

// ruleOf is what the PrometheusRule among rendered objects asks, by alert.
func ruleOf(t *testing.T, rendered string) map[string]string {
	t.Helper()
	for _, o := range decode(t, rendered) {
		if o.GetKind() == "PrometheusRule" {
			rule := &monitoringv1.PrometheusRule{}
			fatal(t, yaml.UnmarshalStrict([]byte(text(t, o)), rule))
			return expressions(rule.Spec)
		}
	}
	t.Fatal("no PrometheusRule is rendered")
	return nil
}

// shippedAlerts is what those in manifests/ ask, by alert.
func shippedAlerts(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(manifests + "/monitoring/alerts.yaml")
	fatal(t, err)
	var spec monitoringv1.PrometheusRuleSpec
	fatal(t, yaml.UnmarshalStrict(content, &spec))
	return expressions(spec)
}

func expressions(spec monitoringv1.PrometheusRuleSpec) map[string]string {
	all := make(map[string]string)
	for _, group := range spec.Groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule.Expr.String()
		}
	}
	return all
}
