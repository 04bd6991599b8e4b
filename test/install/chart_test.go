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

// Who installs without values is told where the images must be.
func TestNotesSayWhereTheImagesAre(t *testing.T) {
	const told = "set imageRegistry"
	for want, values := range map[bool][]string{true: nil, false: {"--set", "imageRegistry=registry.example.com"}} {
		notes := must(t, "", "helm", append([]string{"install", "noted", chart, "--namespace", "kube-system", "--dry-run=server"}, values...)...)
		if !strings.Contains(notes, "schedulerName: noted-espalier-scheduler") || strings.Contains(notes, told) != want {
			t.Errorf("with %q, that %q is said must be %t:\n%s", values, told, want, notes)
		}
	}
}
