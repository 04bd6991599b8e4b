// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
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
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := rig.Main("soak", func() (int, error) {
		return rig.InFolder("soak", func(dir string) (int, error) {
			// A node that falls silent is to be missed within the shortest soak. The logs of all parts are kept with those of a soak that fails.
			args := []string{"--nodes=0", "--node-grace=20s", "--dir=" + filepath.Join(dir, "devcluster")}
			return rig.OnDevcluster(ctx, "soak", binFolder, dir, args, func(d *rig.Devcluster) (code int, err error) {
				world.kubeconfig = d.Kubeconfig
				if err := prepare(ctx, dir); err != nil {
					return 1, err
				}
				defer func() { err = errors.Join(err, world.scheduler.StopCleanly(15*time.Second)) }()
				return rig.UntilInterrupted(ctx, m)
			})
		})
	})
	cancel()
	os.Exit(code)
}

// prepare starts the scheduler with the rights and the profile of the manifests.
func prepare(ctx context.Context, dir string) (err error) {
	if world.devcluster, err = rig.Binary("devcluster", binFolder); err != nil {
		return err
	}
	if world.config, world.client, err = rig.Client(world.kubeconfig); err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "scheduler.kubeconfig")
	applier, err := rig.Entitle(ctx, world.config, world.client, manifests.Files, kubeconfig)
	if err != nil {
		return err
	}
	if err := applier.Definitions(ctx, manifests.Files); err != nil {
		return err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return err
	}
	world.scheduler, err = rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: kubeconfig, Dir: dir})
	return err
}
