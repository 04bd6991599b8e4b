// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../../bin"
	// timeout bounds what is to come.
	timeout = 20 * time.Second
	// together is how many schedulers run at once: they mostly wait.
	together = "6"
)

// cluster is shared by all tests: an API server, and nobody else.
var cluster struct {
	config                *rest.Config
	client                kubernetes.Interface
	applier               *rig.Applier
	scheduler, controller string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(rig.Main("rights", func() (int, error) {
		if err := flag.Set("test.parallel", together); err != nil {
			return 1, err
		}
		return rig.InFolder("rights", func(dir string) (int, error) {
			return rig.OnDevcluster(context.Background(), "rights", binFolder, dir, []string{"--bare"}, func(d *rig.Devcluster) (int, error) {
				if err := prepare(context.Background(), d.Kubeconfig); err != nil {
					return 1, err
				}
				return m.Run(), nil
			})
		})
	}))
}

func prepare(ctx context.Context, kubeconfig string) (err error) {
	if cluster.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return err
	}
	if cluster.controller, err = rig.Binary("espalier-controller", binFolder); err != nil {
		return err
	}
	if cluster.config, cluster.client, err = rig.Client(kubeconfig); err != nil {
		return err
	}
	if cluster.applier, err = rig.NewApplier(cluster.config); err != nil {
		return err
	}
	return cluster.applier.Definitions(ctx, manifests.Files)
}
