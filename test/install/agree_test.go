// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestChartIsTheOverlay wants the chart to install what an overlay does, to the last field. Different are only what
// each tool adds to know its objects again, and what makes a new profile new pods.
func TestChartIsTheOverlay(t *testing.T) {
	root, err := filepath.Abs(manifests)
	fatal(t, err)
	for _, tc := range []struct{ overlay, component, flag, value string }{
		{overlay: "second-scheduler"},
		{overlay: "second-scheduler", component: "arbiter", flag: "--set", value: "controller.arbiter.enabled=true"},
		{overlay: "replace-default", flag: "--values", value: "testdata/values/replace-default.yaml"},
		{overlay: "node-pool", flag: "--values", value: "testdata/values/node-pool.yaml"},
		{overlay: "leases", flag: "--values", value: "testdata/values/leases.yaml"}, // with the argument come the rights
		{overlay: "tenants", flag: "--values", value: "testdata/values/tenants.yaml"},
	} {
		t.Run(tc.overlay+" "+tc.component, func(t *testing.T) {
			var args []string
			if tc.flag != "" {
				args = []string{tc.flag, tc.value}
			}
			dir := t.TempDir()
			relative, err := filepath.Rel(dir, root)
			fatal(t, err)
			kustomization := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + relative + "/overlays/" + tc.overlay + "]\n"
			if tc.component != "" {
				kustomization += "components: [" + relative + "/components/" + tc.component + "]\n"
			}
			fatal(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
			overlay := plain(t, decode(t, must(t, "", "kubectl", "kustomize", dir)))
			if len(overlay) < 20 {
				t.Fatalf("the overlay has %d objects only", len(overlay))
			}
			same(t, overlay, plain(t, decode(t, template(t, "espalier", "kube-system", args...))))
		})
	}
}

// TestModesLeaveWhatIsGiven wants what a value says to win over what a mode says of the same.
func TestModesLeaveWhatIsGiven(t *testing.T) {
	for set, want := range map[string]string{
		`mode="NodePool",scheduler.profiles=[{"addedAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"mine","operator":"Exists"}]}]}}}]`:                                "key: mine",
		`mode="NodePool",scheduler.profiles=[{"pluginArgs":{"NodeAffinity":{"addedAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"own","operator":"Exists"}]}]}}}}}]`: "key: own",
		`mode="ReplaceDefault",scheduler.nodeSelector={"mine":"yes"}`:                                            "mine: \"yes\"",
		`mode="ReplaceDefault",scheduler.strategy={"type":"Recreate"}`:                                           "type: Recreate",
		`mode="ReplaceDefault",scheduler.tolerations=[{"key":"mine","operator":"Exists"}]`:                       "key: mine",
		`mode="ReplaceDefault",scheduler.leaderElection.resourceName="mine"`:                                     "resourceName: mine",
		`mode="ReplaceDefault",scheduler.profiles=[{"schedulerName":"default-scheduler"},{"schedulerName":"b"}]`: "schedulerName: b",
	} {
		got := template(t, "espalier", "kube-system", "--set-json", set)
		if !strings.Contains(got, want) || strings.Contains(got, "espalier.dev/node-pool") {
			t.Errorf("%s: it has no %q, or a pool:\n%s", set, want, got)
		}
	}
}

func same(t *testing.T, overlay, ours map[string]any) {
	t.Helper()
	names := map[string]bool{}
	for _, objects := range []map[string]any{overlay, ours} {
		for name := range objects {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if difference := cmp.Diff(overlay[name], ours[name]); difference != "" {
			t.Errorf("%s: the overlay (-) and the chart (+) differ:\n%s", name, difference)
		}
	}
}

// hash is what kustomize adds to the name of a ConfigMap.
var hash = regexp.MustCompile(`^(espalier-scheduler-config)-[a-z0-9]{10}$`)

// plain strips objects of what tools add, and keys them.
func plain(t *testing.T, objects []object) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, o := range objects {
		o.SetName(hash.ReplaceAllString(o.GetName(), "$1"))
		stripLabels(t, o, "metadata", "labels")
		switch o.GetKind() {
		case "ConfigMap":
			var content any
			fatal(t, yaml.UnmarshalStrict([]byte(configuration(t, []object{o})), &content))
			withoutElectionDefaults(content)
			o.Object["data"] = content
		case "Deployment":
			stripLabels(t, o, "spec", "selector", "matchLabels")
			stripLabels(t, o, "spec", "template", "metadata", "labels")
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations", "checksum/config")
			if rest, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "metadata", "annotations"); len(rest) == 0 {
				unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
			}
			spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
			stripSpec(spec)
			fatal(t, unstructured.SetNestedMap(o.Object, spec, "spec", "template", "spec"))
		case "PodDisruptionBudget":
			stripLabels(t, o, "spec", "selector", "matchLabels")
		}
		all[id(o)] = o.Object
	}
	return all
}

// withoutElectionDefaults removes the times of the election, which the chart writes
// out and the shipped profile leaves to the defaults that they are.
func withoutElectionDefaults(content any) {
	config, _ := content.(map[string]any)
	election, _ := config["leaderElection"].(map[string]any)
	for field, usual := range map[string]string{"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"} {
		if election[field] == usual {
			delete(election, field)
		}
	}
}

// stripSpec brings the names and labels in a pod's spec back to the base's.
func stripSpec(spec map[string]any) {
	constraints, _ := spec["topologySpreadConstraints"].([]any)
	for _, c := range constraints {
		labels, _, _ := unstructured.NestedMap(c.(map[string]any), "labelSelector", "matchLabels")
		delete(labels, "app.kubernetes.io/instance")
		_ = unstructured.SetNestedMap(c.(map[string]any), labels, "labelSelector", "matchLabels")
	}
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		name, _, _ := unstructured.NestedString(v.(map[string]any), "configMap", "name")
		_ = unstructured.SetNestedField(v.(map[string]any), hash.ReplaceAllString(name, "$1"), "configMap", "name")
	}
}

// added are the labels that helm's conventions ask for.
var added = []string{
	"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of",
	"app.kubernetes.io/version", "helm.sh/chart",
}

func stripLabels(t *testing.T, o object, path ...string) {
	t.Helper()
	labels, found, err := unstructured.NestedStringMap(o.Object, path...)
	if err != nil || !found {
		return
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(added, key) })
	fatal(t, unstructured.SetNestedStringMap(o.Object, labels, path...))
}
