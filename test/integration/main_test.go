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

// cluster is shared by all tests: twelve nodes in three zones, and no scheduler.
var cluster struct {
	config *rest.Config
	client kubernetes.Interface
	// admin is the path of the administrator's kubeconfig, account of the scheduler's own.
	admin, account string
	binary         string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "integration", Bin: binFolder}.Main(m, prepare))
}

// prepare applies the rights of the manifests and writes a kubeconfig with them.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	if cluster.binary, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return nil, err
	}
	cluster.admin, cluster.account = d.Kubeconfig, filepath.Join(dir, "scheduler.kubeconfig")
	if cluster.config, cluster.client, err = rig.Client(cluster.admin); err != nil {
		return nil, err
	}
	_, err = rig.Entitle(ctx, cluster.config, cluster.client, manifests.Files, cluster.account)
	return nil, err
}
