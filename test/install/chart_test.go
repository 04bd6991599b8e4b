// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHelmTest wants the pod of `helm test` to be one that the release's scheduler places, and that the API server takes.
func TestHelmTest(t *testing.T) {
	rendered := must(t, "", "helm", "template", "batch", chart, "--namespace", "kube-system", "--show-only", "templates/tests/placed.yaml",
		"--set", "imageRegistry=registry.example.com", "--set", "scheduler.profiles[0].schedulerName=batch")
	objects := decode(t, rendered)
	if len(objects) != 1 || objects[0].GetAnnotations()["helm.sh/hook"] != "test" {
		t.Fatalf("it is no test:\n%s", rendered)
	}
	if name, _, _ := unstructured.NestedString(objects[0].Object, "spec", "schedulerName"); name != "batch" {
		t.Errorf("it is placed by %q", name)
	}
	if _, complaints, err := tool(t, rendered, "kubectl", "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil || complaints != "" {
		t.Errorf("%v\n%s", err, complaints)
	}
}

// TestAdmissionIsForTheFirstProfile wants namespaces that ask for it to get the release's scheduler.
func TestAdmissionIsForTheFirstProfile(t *testing.T) {
	found := false
	for _, o := range decode(t, template(t, "batch", "kube-system", "--set", "admissionPolicies.schedulerName=true", "--set", "scheduler.profiles[0].schedulerName=mine")) {
		if o.GetKind() != "MutatingAdmissionPolicy" {
			continue
		}
		found = true
		mutations, _, _ := unstructured.NestedSlice(o.Object, "spec", "mutations")
		expression, _, _ := unstructured.NestedString(mutations[0].(map[string]any), "applyConfiguration", "expression")
		if want := `Object{spec: Object.spec{schedulerName: "mine"}}`; expression != want {
			t.Errorf("it says %q, want %q", expression, want)
		}
	}
	if !found {
		t.Error("there is no policy")
	}
}

// Who installs is told where the images must be, and warned that two schedulers promise a node twice, unless values have seen to that.
func TestNotes(t *testing.T) {
	notes := func(set ...string) string {
		return must(t, "", "helm", append([]string{"install", "noted", chart, "--namespace", "kube-system", "--dry-run=server"}, set...)...)
	}
	plain := notes()
	if !strings.Contains(plain, "schedulerName: noted-espalier-scheduler") {
		t.Errorf("the notes are\n%s", plain)
	}
	for value, say := range map[string]struct{ without, with string }{
		"imageRegistry=registry.example.com": {"set imageRegistry", "schedulerName: "},
		"controller.arbiter.enabled=true":    {"may promise the same capacity", "so that no node is promised twice"},
	} {
		with := notes("--set", value)
		if !strings.Contains(plain, say.without) || strings.Contains(with, say.without) || !strings.Contains(with, say.with) {
			t.Errorf("%q is to be said without %s, and %q with it:\n%s", say.without, value, say.with, with)
		}
	}
}
