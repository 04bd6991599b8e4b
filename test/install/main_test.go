// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

const (
	binFolder   = "../../bin"
	toolsFolder = "../../_output/tools"
	chart       = "../../manifests/charts/espalier"
	manifests   = "../../manifests"
)

// cluster is shared by all tests: some nodes, and no scheduler.
var cluster struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	dir        string
	// tools is where helm and kubectl are.
	tools string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "install", Bin: binFolder}.Main(m, func(_ context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
		cluster.kubeconfig, cluster.dir = d.Kubeconfig, dir
		if cluster.tools, err = findTools("helm", "kubectl", "image", "cyclonedx-gomod", "hugo"); err != nil {
			return nil, err
		}
		cluster.config, cluster.client, err = rig.Client(d.Kubeconfig)
		return nil, err
	}))
}

// findTools is the folder that holds the pinned tools.
func findTools(names ...string) (string, error) {
	dir, err := filepath.Abs(toolsFolder)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("%w: run `make tools`", err)
		}
	}
	return dir, nil
}

// tool runs helm or kubectl and returns what it says on stdout. What it says on stderr
// is in the error, and is returned as well: warnings are there.
func tool(t *testing.T, stdin, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(cluster.tools, name), args...)
	cmd.Env = environment()
	cmd.Stdin = strings.NewReader(stdin)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &complaints)
	}
	return out.String(), complaints.String(), err
}

// environment leads tools to the test's cluster, and away from the settings of who runs it.
func environment() []string {
	return append(os.Environ(),
		"KUBECONFIG="+cluster.kubeconfig, "KUBECACHEDIR="+filepath.Join(cluster.dir, "kube"),
		"HELM_CACHE_HOME="+filepath.Join(cluster.dir, "helm"), "HELM_CONFIG_HOME="+filepath.Join(cluster.dir, "helm"), "HELM_DATA_HOME="+filepath.Join(cluster.dir, "helm"),
		"HELM_NAMESPACE=", "HELM_PLUGINS="+filepath.Join(cluster.dir, "none"),
	)
}

// fatal ends the test if there is an error.
var fatal = placementtest.Must

// must is tool for what has to work.
func must(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	stdout, _, err := tool(t, stdin, name, args...)
	fatal(t, err)
	return stdout
}

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
