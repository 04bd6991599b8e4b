// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	// patience bounds what is to come.
	patience = 20 * time.Second
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
	code, err := run(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rights:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if err := flag.Set("test.parallel", together); err != nil {
		return 1, err
	}
	if cluster.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return 1, err
	}
	if cluster.controller, err = rig.Binary("espalier-controller", binFolder); err != nil {
		return 1, err
	}
	devcluster, err := rig.Binary("devcluster", binFolder)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "espalier-rights-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if code == 0 && err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintln(os.Stderr, "rights: logs are in", dir)
	}()
	fmt.Fprintln(os.Stderr, "rights: starting an API server")
	dev, err := rig.StartDevcluster(ctx, rig.DevclusterOptions{Binary: devcluster, Dir: dir, Args: []string{"--bare"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, dev.Stop(30*time.Second)) }()
	if cluster.config, cluster.client, err = rig.Client(dev.Kubeconfig); err != nil {
		return 1, err
	}
	if cluster.applier, err = rig.NewApplier(cluster.config); err != nil {
		return 1, err
	}
	if err := cluster.applier.Apply(ctx, manifests.Files, manifests.PolicyDefinition, ""); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
