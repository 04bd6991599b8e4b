// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

const (
	// Folders of what is built, seen from this one: by make build, perf-tools and tools.
	binFolder   = "../../bin"
	stockFolder = "../../_output/perf"
	toolsFolder = "../../_output/tools"

	timeout = 2 * time.Minute
	// hung is when a block of commands has taken too long: one of them is a whole demo, which may have to be built.
	hung = 15 * time.Minute
)

// world is the cluster in which the commands are run, one page after the other.
var world struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	// dir takes logs, and is kept if a test fails; path is where commands are found.
	dir, path string
	// root is that of the repository.
	root string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "pages", Bin: binFolder, Args: func(string) []string { return []string{"--nodes=0"} }}.Main(m, prepare))
}

// prepare has the nodes join and Espalier installed.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig, world.dir = d.Kubeconfig, dir
	if world.config, world.client, err = rig.Client(d.Kubeconfig); err != nil {
		return nil, err
	}
	if err := commands(); err != nil {
		return nil, err
	}
	stock, err := rig.BinaryIn(stockFolder, "kube-scheduler")
	if err != nil {
		return nil, fmt.Errorf("the stock scheduler is built by `make perf-tools`: %w", err)
	}
	p, err := rig.StartScheduler(rig.SchedulerOptions{Name: "kube-scheduler", Binary: stock, Kubeconfig: d.Kubeconfig, Dir: dir})
	if err != nil {
		return nil, err
	}
	processes := []*rig.Process{p}
	end = func() (err error) {
		for _, p := range processes {
			err = errors.Join(err, p.Stop(15*time.Second))
		}
		return err
	}
	fmt.Fprintln(os.Stderr, "pages: installing")
	// The nodes first: what a Deployment waits for is on them.
	if err := shell(ctx, "kubectl apply -f test/pages/testdata/nodes.yaml; kubectl wait node --all --for=condition=Ready --timeout=1m; make deploy DEPLOY_FLAGS=--wait"); err != nil {
		return end, err
	}
	more, err := start(ctx)
	processes = append(processes, more...)
	return end, err
}

// commands makes a folder of all that the pages call by its name.
func commands() (err error) {
	if world.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	folder := filepath.Join(world.dir, "path")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for name, path := range map[string]string{
		"kubectl": toolsFolder + "/kubectl", "helm": toolsFolder + "/helm", "kubectl-espalier": binFolder + "/kubectl-espalier",
	} {
		path, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			return fmt.Errorf("%w: run `make build tools`", err)
		}
	}
	world.path = folder + ":" + os.Getenv("PATH")
	return nil
}

// start starts what the chart has installed, with its rights.
func start(ctx context.Context) (processes []*rig.Process, err error) {
	for _, name := range []string{rig.SchedulerName, rig.ControllerName} {
		binary, err := rig.Binary(name, binFolder)
		if err != nil {
			return processes, err
		}
		kubeconfig := filepath.Join(world.dir, name+".kubeconfig")
		if err := rig.WriteKubeconfig(ctx, world.config, world.client, name, kubeconfig); err != nil {
			return processes, err
		}
		var p *rig.Process
		if name == rig.SchedulerName {
			p, err = rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: kubeconfig, Dir: world.dir, Args: []string{"--leader-elect=true"}})
		} else {
			p, err = rig.Start(rig.Command{
				Name: name, Path: binary, Dir: world.dir, Args: []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0"},
			})
		}
		if err != nil {
			return processes, err
		}
		processes = append(processes, p)
	}
	err = rig.Poll(ctx, timeout, 100*time.Millisecond, "a leader", func() error {
		_, err := rig.Holder(ctx, world.client, "")
		return err
	})
	return processes, err
}

// fatal ends the test if there is an error.
var fatal = placementtest.Must

// environment leads commands to the test's cluster, and away from the settings of who runs it.
func environment() []string {
	return append(os.Environ(),
		"KUBECONFIG="+world.kubeconfig, "KUBECACHEDIR="+filepath.Join(world.dir, "kube"), "PATH="+world.path, "ESPALIER_TOOLS="+filepath.Join(world.root, "_output", "tools"),
		"HELM_CACHE_HOME="+filepath.Join(world.dir, "helm"), "HELM_CONFIG_HOME="+filepath.Join(world.dir, "helm"), "HELM_DATA_HOME="+filepath.Join(world.dir, "helm"),
		"HELM_NAMESPACE=", "HELM_PLUGINS="+filepath.Join(world.dir, "none"), "REGISTRY=registry.example.com/espalier",
	)
}

// shell runs a script in the root of the repository.
func shell(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = world.root, environment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, &out)
	}
	return nil
}
