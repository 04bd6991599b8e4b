// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
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
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must is tool for what has to work.
func must(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	stdout, _, err := tool(t, stdin, name, args...)
	fatal(t, err)
	return stdout
}
