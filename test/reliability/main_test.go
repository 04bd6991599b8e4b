// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if world.dir, err = os.MkdirTemp("", "espalier-reliability-"); err != nil {
		return 1, err
	}
	defer func() {
		if code == 0 && err == nil {
			err = os.RemoveAll(world.dir)
			return
		}
		fmt.Fprintln(os.Stderr, "reliability: logs are in", world.dir)
	}()
	if world.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return 1, err
	}
	binary, err := rig.Binary("devcluster", binFolder)
	if err != nil {
		return 1, err
	}
	fmt.Fprintln(os.Stderr, "reliability: starting a devcluster")
	// While the API server is away no node can say that it is well. On a busy machine that
	// would cost it its pods, and the story is not about nodes.
	world.Devcluster, err = rig.StartDevcluster(ctx, rig.DevclusterOptions{
		Binary: binary, Dir: world.dir, Args: []string{"--nodes=25", "--zones=3", "--racks=2", "--node-grace=10m"},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, world.Stop(30*time.Second)) }()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code = <-ended:
		printTable()
		return code, nil
	case <-ctx.Done():
		return 1, errors.New("interrupted")
	}
}

// prepare applies what the manifests give the scheduler, and writes a kubeconfig with it.
func prepare(ctx context.Context) (err error) {
	if world.config, world.client, err = rig.Client(world.Kubeconfig); err != nil {
		return err
	}
	applier, err := rig.NewApplier(world.config)
	if err != nil {
		return err
	}
	if err := applier.Rights(ctx, manifests.Files); err != nil {
		return err
	}
	if err := applier.Apply(ctx, manifests.Files, manifests.PolicyDefinition, ""); err != nil {
		return err
	}
	world.kubeconfig = filepath.Join(world.dir, "scheduler.kubeconfig")
	return rig.WriteSchedulerKubeconfig(ctx, world.config, world.client, world.kubeconfig)
}

// printTable prints the rows as docs/reliability.md has them.
func printTable() {
	fmt.Printf("\nLease of %s, %d cores\n\n", *leaseFlag, runtime.NumCPU())
	fmt.Println("| what happens | bound before | after | longest time without a binding | all bound after | bindings refused | uneven |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	fmt.Println(strings.Join(world.table, "\n"))
}
