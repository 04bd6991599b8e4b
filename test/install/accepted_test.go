// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	configscheme "github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// ways are all the ways to install, rendered for a namespace that is there.
func ways(t *testing.T) map[string][]object {
	t.Helper()
	if rendered != nil {
		return rendered
	}
	const namespace = "accepted"
	makeNamespace(t, namespace)
	makeNamespace(t, "leases")
	makeNamespace(t, "123")
	all := map[string][]object{
		"manifests/base": decode(t, must(t, "", "kubectl", "kustomize", manifests+"/base")),
		"chart":          decode(t, template(t, "espalier", namespace)),
		// Names that hold those of the parts, which are to be replaced in what the release is given.
		"chart as my-espalier-controller": decode(t, template(t, "my-espalier-controller", namespace)),
		"chart as espalier-policies":      decode(t, template(t, "trellis", namespace, "--set", "fullnameOverride=espalier-policies")),
		// Names that YAML takes for numbers, and one that no Service may have.
		"chart as 2024":     decode(t, template(t, "2024", "123")),
		"chart as batch.v1": decode(t, template(t, "batch.v1", namespace, "--set", "serviceMonitor.enabled=true")),
	}
	for _, file := range cases(t) {
		all["chart with "+filepath.Base(file)] = decode(t, template(t, "espalier", namespace, "--values", file))
	}
	overlays, err := filepath.Glob(manifests + "/overlays/*")
	if err != nil || len(overlays) < 3 {
		t.Fatalf("found %v: %v", overlays, err)
	}
	for _, overlay := range overlays {
		all["overlay "+filepath.Base(overlay)] = decode(t, must(t, "", "kubectl", "kustomize", overlay))
	}
	rendered = all
	return all
}

// rendered is what ways has rendered.
var rendered map[string][]object

// makeNamespace makes a namespace whose API server says what the strictest of the Pod Security Standards would not allow there.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	must(t, `{apiVersion: v1, kind: Namespace, metadata: {name: "`+name+`", labels: {pod-security.kubernetes.io/warn: restricted}}}`,
		"kubectl", "apply", "--server-side", "-f", "-")
}

// expected is what each way says of its scheduler: the names of its profiles, and of those that keep records of failures, with the namespaces of these.
var expected = map[string]struct{ profiles, records string }{
	"manifests/base":                  {"espalier-scheduler", "kube-system/espalier-scheduler"},
	"overlay second-scheduler":        {"espalier-scheduler", "kube-system/espalier-scheduler"},
	"overlay node-pool":               {"espalier-scheduler", "kube-system/espalier-scheduler"},
	"overlay leases":                  {"espalier-scheduler", "kube-system/espalier-scheduler"},
	"overlay tenants":                 {"espalier-scheduler", "kube-system/espalier-scheduler"},
	"overlay replace-default":         {"espalier-scheduler default-scheduler", "kube-system/espalier-scheduler kube-system/default-scheduler"},
	"chart":                           {"espalier-scheduler", "accepted/espalier-scheduler"},
	"chart with node-pool.yaml":       {"espalier-scheduler", "accepted/espalier-scheduler"},
	"chart with leases.yaml":          {"espalier-scheduler", "accepted/espalier-scheduler"},
	"chart with lifetimes.yaml":       {"espalier-scheduler", "accepted/espalier-scheduler"},
	"chart with tenants.yaml":         {"espalier-scheduler", "accepted/espalier-scheduler"},
	"chart with replace-default.yaml": {"espalier-scheduler default-scheduler", "accepted/espalier-scheduler accepted/default-scheduler"},
	"chart with many.yaml":            {"trellis trellis-pack", "accepted/trellis leases/trellis-pack"},
	"chart with second.yaml":          {"batch-scheduler", ""},
	"chart with configuration.yaml":   {"bare watched", "accepted/watched"},
	"chart as my-espalier-controller": {"my-espalier-controller-scheduler", "accepted/my-espalier-controller-scheduler"},
	"chart as espalier-policies":      {"espalier-policies-scheduler", "accepted/espalier-policies-scheduler"},
	"chart as 2024":                   {"2024-espalier-scheduler", "123/2024-espalier-scheduler"},
	"chart as batch.v1":               {"batch-v1-espalier-scheduler", "accepted/batch-v1-espalier-scheduler"},
}

// TestEveryWay holds every way to install to what all of them promise.
func TestEveryWay(t *testing.T) {
	for name, objects := range ways(t) {
		t.Run(name, func(t *testing.T) {
			if slices.ContainsFunc(objects, func(o object) bool { return o.GetKind() == "MutatingAdmissionPolicy" }) {
				rig.Since(t, cluster.client, rig.MutatingSince, "policies that change objects")
			}
			apiServerAccepts(t, objects)
			cfg := read(t, configuration(t, objects))
			var names []string
			for _, p := range cfg.Profiles {
				names = append(names, p.SchedulerName)
			}
			if got := strings.Join(names, " "); got != expected[name].profiles {
				t.Errorf("the profiles are %s, want %s", got, expected[name].profiles)
			}
			pinned := strings.Contains(name, "pool") || strings.Contains(name, "many")
			if pinned != (addedAffinity(cfg.Profiles[0]) != nil) {
				t.Errorf("pinned to a pool is %t, and the added affinity is %v", pinned, addedAffinity(cfg.Profiles[0]))
			}
			rightsGoWithTheConfiguration(t, objects, cfg, expected[name].records)
			peopleMayWritePolicies(t, objects)
			controllerServesItsMetrics(t, objects)
			for _, o := range objects {
				// By this label manifests/admission/scheduler-name.yaml leaves them to the scheduler that places them.
				if _, pods := labelsOf(t, o); o.GetKind() == "Deployment" && !slices.Contains([]string{"espalier-scheduler", "espalier-controller"}, pods["app.kubernetes.io/name"]) {
					t.Errorf("the pods of %s have the labels %v", id(o), pods)
				}
			}
		})
	}
}

// apiServerAccepts sends every object to the API server, which decodes it strictly, sets its defaults, admits and validates it, and stores nothing.
func apiServerAccepts(t *testing.T, objects []object) {
	t.Helper()
	var stored []string
	for _, o := range objects {
		if o.GroupVersionKind().Group == "monitoring.coreos.com" {
			// A kind of the Prometheus operator's, which this cluster has not.
			strictly(t, o)
			continue
		}
		stored = append(stored, text(t, o))
	}
	_, complaints, err := tool(t, strings.Join(stored, "---\n"), "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
	fatal(t, err)
	if complaints != "" {
		t.Errorf("the API server warns:\n%s", complaints)
	}
}

// TestAPIServerRefuses makes sure that the check above can fail.
func TestAPIServerRefuses(t *testing.T) {
	makeNamespace(t, "refused")
	for name, tc := range map[string]struct{ old, now, want string }{
		"unknown field":   {"replicas:", "replica:", ".spec.replica: field not declared in schema"},
		"invalid value":   {"imagePullPolicy: IfNotPresent", "imagePullPolicy: Perhaps", "supported values"},
		"too many rights": {"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "would violate PodSecurity"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range decode(t, template(t, "espalier", "refused")) {
				if o.GetKind() != "Deployment" {
					continue
				}
				spoiled := strings.Replace(text(t, o), tc.old, tc.now, 1)
				_, complaints, err := tool(t, spoiled, "kubectl", "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
				if !strings.Contains(complaints, tc.want) {
					t.Errorf("%s: want a complaint with %q, got %v %s", o.GetName(), tc.want, err, complaints)
				}
			}
		})
	}
}

// strictly decodes a kind of the Prometheus operator's as its own types say.
func strictly(t *testing.T, o object) {
	t.Helper()
	kinds := map[string]any{"ServiceMonitor": &monitoringv1.ServiceMonitor{}, "PrometheusRule": &monitoringv1.PrometheusRule{}}
	into, known := kinds[o.GetKind()]
	if !known {
		t.Fatalf("%s: this test does not know the kind: teach it", id(o))
	}
	if err := yaml.UnmarshalStrict([]byte(text(t, o)), into); err != nil {
		t.Errorf("%s: %v", id(o), err)
	}
}

func text(t *testing.T, o object) string {
	t.Helper()
	content, err := yaml.Marshal(o.Object)
	fatal(t, err)
	return string(content)
}

// read decodes and validates a configuration, our arguments too.
func read(t *testing.T, content string) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	obj, gvk, err := configscheme.Codecs.UniversalDecoder().Decode([]byte(content), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	cfg, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("it is a %T", obj)
	}
	cfg.APIVersion = gvk.GroupVersion().String()
	if err := schedulervalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		t.Error(err)
	}
	for _, profile := range cfg.Profiles {
		for _, pc := range profile.PluginConfig {
			if err := validation.PluginArgs(nil, pc.Args).ToAggregate(); err != nil {
				t.Error(err)
			}
		}
	}
	return cfg
}

func addedAffinity(profile schedulerapi.KubeSchedulerProfile) *corev1.NodeAffinity {
	for _, pc := range profile.PluginConfig {
		if args, ok := pc.Args.(*schedulerapi.NodeAffinityArgs); ok {
			return args.AddedAffinity
		}
	}
	return nil
}
