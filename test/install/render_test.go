// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// object is one rendered object.
type object = *unstructured.Unstructured

// id names an object in its cluster.
func id(o object) string { return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName() }

// template renders the chart, but for what `helm test` runs.
func template(t *testing.T, release, namespace string, args ...string) string {
	t.Helper()
	return must(t, "", "helm", append([]string{"template", release, chart, "--namespace", namespace, "--include-crds", "--skip-tests"}, args...)...)
}

// values is the document of values in a file.
func values(t *testing.T, path string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(path)
	fatal(t, err)
	var v map[string]any
	if err := yaml.UnmarshalStrict(content, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// write puts values into a file for helm.
func write(t *testing.T, v map[string]any) string {
	t.Helper()
	content, err := yaml.Marshal(v)
	fatal(t, err)
	path := filepath.Join(t.TempDir(), "values.yaml")
	fatal(t, os.WriteFile(path, content, 0o600))
	return path
}

// cases are the files of values that the chart is tested with.
func cases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v: %v", files, err)
	}
	return files
}

// decode reads the objects of rendered YAML, which says nothing twice.
func decode(t *testing.T, text string) []object {
	t.Helper()
	var objects []object
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		var content map[string]any
		if err == nil {
			err = yaml.UnmarshalStrict(document, &content)
		}
		o := &unstructured.Unstructured{}
		if err == nil && len(content) > 0 {
			// For whole numbers, which are none in the map above.
			err = yaml.Unmarshal(document, o)
			objects = append(objects, o)
		}
		if err != nil {
			t.Fatalf("document %d: %v\n%s", len(objects)+1, err, document)
		}
	}
}

// configuration is the text of the scheduler's configuration among rendered objects.
func configuration(t *testing.T, objects []object) string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" && strings.Contains(o.GetName(), "-scheduler-config") {
			text, _, _ := unstructured.NestedString(o.Object, "data", "scheduler-config.yaml")
			return text
		}
	}
	t.Fatal("no ConfigMap holds the scheduler's configuration")
	return ""
}
