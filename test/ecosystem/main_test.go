// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// binFolder is where make puts the binaries, seen from this folder.
const binFolder = "../../bin"

// quietFlag is for how long nothing may happen when a story is at its end.
var quietFlag = flag.Duration("quiet", 10*time.Minute, "for how long nothing may be moved when all is even")

// world is the cluster that the stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// kubeconfig is the administrator's, which the neighbours have.
	kubeconfig, dir string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "ecosystem", Bin: binFolder, Args: func(string) []string { return []string{"--nodes=0"} }}.Main(m, prepare))
}

// prepare starts a scheduler with the rights of the manifests, and the controller.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig, world.dir = d.Kubeconfig, dir
	if world.config, world.client, err = rig.Client(d.Kubeconfig); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "scheduler.kubeconfig")
	applier, err := rig.Entitle(ctx, world.config, world.client, manifests.Files, kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := applier.Definitions(ctx, manifests.Files); err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	scheduler, err := rig.StartScheduler(rig.SchedulerOptions{
		Binary: binary, Kubeconfig: kubeconfig, Dir: dir, Args: []string{"--config=../../manifests/base/scheduler-config.yaml"},
	})
	if err != nil {
		return nil, err
	}
	controller, err := startController(ctx, applier)
	return func() (err error) {
		if controller != nil {
			err = controller.StopCleanly(15 * time.Second)
		}
		return errors.Join(err, scheduler.StopCleanly(15*time.Second))
	}, err
}

// rebalanceLabel is on the namespaces in which the controller rebalances.
const rebalanceLabel = "ecosystem.espalier.dev/rebalance"

// startController starts the controller, which rebalances and waits for no longer than it has to.
func startController(ctx context.Context, applier *rig.Applier) (*rig.Process, error) {
	if err := applier.Apply(ctx, manifests.Files, "components/rebalance/rbac.yaml", ""); err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-controller", binFolder)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(world.dir, "controller.kubeconfig")
	if err := rig.WriteKubeconfig(ctx, world.config, world.client, rig.ControllerName, kubeconfig); err != nil {
		return nil, err
	}
	return rig.Start(rig.Command{Name: rig.ControllerName, Path: binary, Dir: world.dir, Args: []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0",
		"--rebalance=Enabled", "--rebalance-namespace-selector=" + rebalanceLabel, "--rebalance-quiet=3s", "--rebalance-node-ready=2s", "--rebalance-pod-age=2s",
	}})
}
