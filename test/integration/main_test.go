// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
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
	// patience bounds anything that a test waits for.
	patience = 60 * time.Second
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
	code, err := run(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if cluster.binary, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return 1, err
	}
	devcluster, err := rig.Binary("devcluster", binFolder)
	if err != nil {
		return 1, err
	}
	if cluster.dir, err = os.MkdirTemp("", "espalier-integration-"); err != nil {
		return 1, err
	}
	defer func() {
		if code == 0 && err == nil {
			err = os.RemoveAll(cluster.dir)
			return
		}
		fmt.Fprintln(os.Stderr, "integration: logs are in", cluster.dir)
	}()
	fmt.Fprintln(os.Stderr, "integration: starting a devcluster")
	dev, err := rig.StartDevcluster(ctx, rig.DevclusterOptions{Binary: devcluster, Dir: cluster.dir, Args: []string{"--nodes=6", "--zones=3", "--racks=1"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, dev.Stop(30*time.Second)) }()
	if err := prepare(ctx, dev.Kubeconfig); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// prepare applies the rights of the manifests and writes a kubeconfig with them.
func prepare(ctx context.Context, kubeconfig string) (err error) {
	cluster.admin = kubeconfig
	cluster.account = filepath.Join(cluster.dir, "scheduler.kubeconfig")
	if cluster.config, cluster.client, err = rig.Client(kubeconfig); err != nil {
		return err
	}
	applier, err := rig.NewApplier(cluster.config)
	if err != nil {
		return err
	}
	if err := applier.Rights(ctx, manifests.Files); err != nil {
		return err
	}
	return rig.WriteSchedulerKubeconfig(ctx, cluster.config, cluster.client, cluster.account)
}
