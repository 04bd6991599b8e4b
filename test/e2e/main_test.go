// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
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

var (
	kubeconfigFlag = flag.String("kubeconfig", os.Getenv("ESPALIER_E2E_KUBECONFIG"), "administrator's kubeconfig of the cluster to tell the stories on; empty starts a devcluster")
	schedulerFlag  = flag.String("scheduler", "process", "process: start bin/espalier-scheduler with the rights of manifests/; deployed: the cluster runs it already")
	nodesFlag      = flag.String("nodes", "devcluster", "who plays the nodes that stories make. devcluster: on demand they fail; kwok: KWOK by its own stages, which nothing fails in")
)

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// parallelStories is how many stories run at once where -parallel does not say.
// They mostly wait, so that many do not need as many cores; but beyond this one
// story's pods wait long enough for another's to make deadlines doubtful.
const parallelStories = "8"

// world is the cluster that all stories share. It is set up once and then only read.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// kubeconfig is the administrator's.
	kubeconfig string
	// dir takes logs and kubeconfigs; it is kept if a story fails.
	dir string
	// schedulerKubeconfig holds the service account's token.
	schedulerKubeconfig string
	// scheduler and controller are nil if the cluster runs them itself.
	scheduler, controller *rig.Process
}

func TestMain(m *testing.M) {
	flag.Parse()
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", parallelStories)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// run sets the world up, tells the stories, and takes the world down again.
func run(ctx context.Context, m *testing.M) (code int, err error) {
	if world.dir, err = os.MkdirTemp("", "espalier-e2e-"); err != nil {
		return 1, err
	}
	defer func() {
		if code == 0 && err == nil {
			_ = os.RemoveAll(world.dir)
			return
		}
		fmt.Fprintln(os.Stderr, "e2e: logs are in", world.dir)
	}()
	kubeconfig := *kubeconfigFlag
	if kubeconfig == "" {
		cluster, err := startDevcluster(ctx)
		if err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, cluster.Stop(30*time.Second)) }()
		kubeconfig = cluster.Kubeconfig
	}
	world.kubeconfig = kubeconfig
	if world.config, world.client, err = rig.Client(kubeconfig); err != nil {
		return 1, err
	}
	if err := prepareScheduler(ctx); err != nil {
		return 1, err
	}
	if world.scheduler != nil {
		defer func() {
			err = errors.Join(err, world.scheduler.Stop(15*time.Second), world.controller.Stop(15*time.Second))
		}()
	}
	// The stories cannot be interrupted from here; the test binary's own timeout
	// bounds them, and an interrupt must still not leave processes behind.
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code = <-ended:
		return code, nil
	case <-ctx.Done():
		return 1, errors.New("interrupted")
	}
}

func startDevcluster(ctx context.Context) (*rig.Devcluster, error) {
	binary, err := rig.Binary("devcluster", binFolder)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "e2e: starting a devcluster")
	return rig.StartDevcluster(ctx, rig.DevclusterOptions{Binary: binary, Dir: world.dir, Args: []string{"--nodes=0"}})
}

// prepareScheduler applies the rights of the manifests and, where the cluster
// does not run the scheduler itself, starts it with them.
func prepareScheduler(ctx context.Context) error {
	world.schedulerKubeconfig = filepath.Join(world.dir, "scheduler.kubeconfig")
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
	if err := rig.WriteSchedulerKubeconfig(ctx, world.config, world.client, world.schedulerKubeconfig); err != nil {
		return err
	}
	switch *schedulerFlag {
	case "deployed":
		return nil
	case "process":
		if world.controller, err = startController(ctx); err != nil {
			return err
		}
		world.scheduler, err = startScheduler(rig.SchedulerName)
		return err
	default:
		return fmt.Errorf("-scheduler=%s: it is process or deployed", *schedulerFlag)
	}
}

// startScheduler starts one more scheduler process, its log named after it.
func startScheduler(name string, args ...string) (*rig.Process, error) {
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	return rig.StartScheduler(rig.SchedulerOptions{
		Name: name, Binary: binary, Kubeconfig: world.schedulerKubeconfig, Dir: world.dir, Args: args,
	})
}

func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
