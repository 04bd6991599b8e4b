// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../bin"
	// timeout bounds anything that a test waits for.
	timeout = 60 * time.Second
)

// cluster is shared by all tests: six nodes in three zones, and no scheduler.
var cluster struct {
	config *rest.Config
	client kubernetes.Interface
	// admin is the path of the administrator's kubeconfig, account of the scheduler's own.
	admin, account string
	dir            string
	binary         string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Main("integration", func() (int, error) {
		return rig.InFolder("integration", func(dir string) (int, error) {
			cluster.dir = dir
			args := []string{"--nodes=6", "--zones=3", "--racks=1"}
			return rig.OnDevcluster(context.Background(), "integration", binFolder, dir, args, func(d *rig.Devcluster) (int, error) {
				if err := prepare(context.Background(), d.Kubeconfig); err != nil {
					return 1, err
				}
				return m.Run(), nil
			})
		})
	}))
}

// prepare applies the rights of the manifests and writes a kubeconfig with them.
func prepare(ctx context.Context, kubeconfig string) (err error) {
	if cluster.binary, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return err
	}
	cluster.admin = kubeconfig
	cluster.account = filepath.Join(cluster.dir, "scheduler.kubeconfig")
	if cluster.config, cluster.client, err = rig.Client(kubeconfig); err != nil {
		return err
	}
	_, err = rig.Entitle(ctx, cluster.config, cluster.client, manifests.Files, cluster.account)
	return err
}
