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
	timeout = 60 * time.Second
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
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err) // it is a flag of go test
	}
	os.Exit(rig.Suite{Name: "rights", Bin: binFolder, Args: func(string) []string { return []string{"--bare"} }}.Main(m, prepare))
}

func prepare(ctx context.Context, d *rig.Devcluster, _ string) (end func() error, err error) {
	if cluster.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return nil, err
	}
	if cluster.controller, err = rig.Binary("espalier-controller", binFolder); err != nil {
		return nil, err
	}
	if cluster.config, cluster.client, err = rig.Client(d.Kubeconfig); err != nil {
		return nil, err
	}
	if cluster.applier, err = rig.NewApplier(cluster.config); err != nil {
		return nil, err
	}
	return nil, cluster.applier.Definitions(ctx, manifests.Files)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
