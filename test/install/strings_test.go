// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// labelsOf are the labels of an object, and those of the pods that it makes.
func labelsOf(t *testing.T, o object) (own, pods map[string]string) {
	t.Helper()
	pods, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	if err != nil {
		t.Errorf("%s: %v", id(o), err)
	}
	return o.GetLabels(), pods
}

// TestLabelsOfTheChartStay gives labels and annotations that the chart has itself: each is there once, as
// the chart has it, because Deployments, make undeploy and new configurations go by them.
func TestLabelsOfTheChartStay(t *testing.T) {
	args := []string{
		"--set", "prometheusRule.enabled=true,serviceMonitor.enabled=true",
		"--set-json", `scheduler.podAnnotations={"checksum/config":"mine","about":"it"}`,
	}
	for _, value := range []string{"commonLabels", "scheduler.podLabels", "controller.podLabels", "prometheusRule.labels", "serviceMonitor.labels"} {
		args = append(args, "--set-json", value+`={"app.kubernetes.io/name":"mine","app.kubernetes.io/instance":"mine","app.kubernetes.io/part-of":"mine","mine":"yes"}`)
	}
	for _, o := range decode(t, template(t, "espalier", "kube-system", args...)) {
		own, pods := labelsOf(t, o)
		if o.GetKind() == "CustomResourceDefinition" {
			continue // helm's own folder for these has no templates
		}
		if own["app.kubernetes.io/part-of"] != "espalier" || own["app.kubernetes.io/instance"] != "espalier" || own["mine"] != "yes" {
			t.Errorf("%s has the labels %v", id(o), own)
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		if pods["app.kubernetes.io/name"] != o.GetName() || pods["app.kubernetes.io/instance"] != "espalier" || pods["mine"] != "yes" {
			t.Errorf("the pods of %s have the labels %v", id(o), pods)
		}
		annotations, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
		if o.GetName() == "espalier-scheduler" && (len(annotations["checksum/config"]) != 64 || annotations["about"] != "it") {
			t.Errorf("the pods of %s have the annotations %v", id(o), annotations)
		}
	}
}

// refusedAt is a value that the schema refuses.
var refusedAt = regexp.MustCompile(`at '/([^']+)'`)

// TestStringsStayStrings gives all values that are strings one that YAML would read as something else, and one
// of several lines, of which the second would be a field: they are refused, or are strings in what is rendered.
func TestStringsStayStrings(t *testing.T) {
	_, defaults := described(t)
	const fields = `"1\ninjected: true\n        injected: true"`
	for _, given := range []string{`"007"`, `"on"`, fields} {
		sets := map[string]string{} // by how the schema names the value
		for path, value := range defaults {
			path = strings.Replace(path, "[].", "[0].", 1)
			at := strings.NewReplacer(".", "/", "[0]", "/0").Replace(path)
			switch value := value.(type) {
			case string:
				sets[at] = path + "=" + given
			case []any:
				if len(value) == 0 {
					sets[at] = path + "=[" + given + "]"
				}
			}
		}
		rendered := ""
		for all := len(sets); rendered == ""; {
			args := []string{"template", "espalier", chart, "--namespace", "kube-system", "--include-crds", "--set", "prometheusRule.enabled=true,serviceMonitor.enabled=true"}
			for _, set := range sets {
				args = append(args, "--set-json", set)
			}
			var err error
			if rendered, _, err = tool(t, "", "helm", args...); err == nil {
				t.Logf("of %d values %d may be %s", all, len(sets), given)
				break
			}
			before := len(sets)
			for _, at := range refusedAt.FindAllStringSubmatch(err.Error(), -1) {
				maps.DeleteFunc(sets, func(value, _ string) bool { return strings.HasPrefix(at[1]+"/", value+"/") })
			}
			if len(sets) == before {
				t.Fatalf("%s is refused, but not by the schema: %v", given, err)
			}
		}
		for _, o := range decode(t, rendered) {
			whole(t, given, o)
		}
	}
}

// whole wants an object to be valid as far as a string may spoil it: names, labels, annotations and
// arguments are strings, and no field is named injected.
func whole(t *testing.T, set string, o object) {
	t.Helper()
	labelsOf(t, o)
	if o.GetName() == "" {
		t.Errorf("%s: a %s has no name", set, o.GetKind())
	}
	if content, err := json.Marshal(o.Object); err != nil || strings.Contains(string(content), `"injected":`) {
		t.Errorf("%s: a part of the string is a field of %s: %v", set, id(o), err)
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	if class, there := spec["priorityClassName"]; there {
		if _, isString := class.(string); !isString {
			t.Errorf("%s: the priorityClassName of %s is %v", set, id(o), class)
		}
	}
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		command, _ := c.(map[string]any)["command"].([]any)
		for _, argument := range command {
			if _, isString := argument.(string); !isString {
				t.Errorf("%s: %s is started with %s", set, id(o), fmt.Sprint(argument))
			}
		}
	}
}

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
