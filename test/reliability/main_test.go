// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// leaseFlag is how long a silent leader keeps the Lease. The default is the shipped one; the
// renew deadline and the retry period are in proportion to it, as they are there.
var leaseFlag = flag.Duration("lease", 15*time.Second, "how long a silent leader keeps the Lease")

// core are the stories that are told with -short, of fewer pods. The leader that wakes up is replaced as one that is killed, and fenced off besides.
var core = []string{"TestLeaderPaused", "TestControllerKilledAfterEachCall"}

// world is the cluster that the stories share: 25 nodes, of which one zone has more than the others.
var world struct {
	*rig.Devcluster
	config *rest.Config
	client kubernetes.Interface
	// scheduler is the path of the binary, kubeconfig holds the token of its service account.
	scheduler, kubeconfig string
	// dir takes logs; it is kept if a story fails.
	dir string
	// table has a row for each story that has been told.
	table []string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "reliability", Bin: binFolder, Args: func(string) []string {
		// While the API server is away no node can say that it is well. On a busy machine that
		// would cost it its pods, and the story is not about nodes.
		return []string{"--nodes=25", "--zones=3", "--racks=2", "--node-grace=10m"}
	}}.Main(m, func(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
		world.Devcluster, world.dir = d, dir
		return printTable, prepare(ctx)
	}))
}

// prepare applies what the manifests give the scheduler.
func prepare(ctx context.Context) (err error) {
	if world.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return err
	}
	if world.config, world.client, err = rig.Client(world.Kubeconfig); err != nil {
		return err
	}
	world.kubeconfig = filepath.Join(world.dir, "scheduler.kubeconfig")
	applier, err := rig.Entitle(ctx, world.config, world.client, manifests.Files, world.kubeconfig)
	if err != nil {
		return err
	}
	return applier.Definitions(ctx, manifests.Files)
}

// printTable prints the rows as docs/reliability.md has them.
func printTable() error {
	fmt.Printf("\nLease of %s, %d cores\n\n", *leaseFlag, runtime.NumCPU())
	fmt.Println("| what happens | bound before | after | longest time without a binding | all bound after | bindings refused | uneven |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	fmt.Println(strings.Join(world.table, "\n"))
	return nil
}
