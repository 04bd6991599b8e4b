// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
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

var lasting = flag.Duration("lasting", 30*time.Second, "how long everything happens at once")

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// world is the cluster. It is set up once and then only read.
var world struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	devcluster string
	scheduler  *rig.Process
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "soak", Bin: binFolder, Args: func(dir string) []string {
		// A node that falls silent is to be missed within the shortest soak. The logs of all parts are kept with those of a soak that fails.
		return []string{"--nodes=0", "--node-grace=20s", "--dir=" + filepath.Join(dir, "devcluster")}
	}}.Main(m, prepare))
}

// prepare starts the scheduler with the rights and the profile of the manifests.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig = d.Kubeconfig
	if world.devcluster, err = rig.Binary("devcluster", binFolder); err != nil {
		return nil, err
	}
	if world.config, world.client, err = rig.Client(world.kubeconfig); err != nil {
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
	if world.scheduler, err = rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: kubeconfig, Dir: dir}); err != nil {
		return nil, err
	}
	return func() error { return world.scheduler.StopCleanly(15 * time.Second) }, nil
}
