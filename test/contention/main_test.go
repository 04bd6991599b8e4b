// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// binFolder is where make build puts the binaries, and stockFolder where make perf-tools puts the stock scheduler, seen from this folder.
	binFolder   = "../../bin"
	stockFolder = "../../_output/perf"
	// timeout bounds what is to come on a busy machine.
	timeout = 3 * time.Minute
)

// core are the stories that are told with -short, which have a fifth of the pods that docs/several-schedulers.md says: what goes wrong with bindings, and what the arbiter is for.
var core = []string{"TestAnswersThatGoWrong", "TestTwoSchedulersFull/with"}

// world is the cluster that the stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// dir takes logs; it is kept if a story fails.
	dir string
	// kubeScheduler is for the stock scheduler, by the name that it has in every cluster; scheduler and controller hold the tokens of their
	// accounts.
	kubeScheduler, scheduler, controller string
	// metricsToken is for whoever asks for metrics.
	metricsToken string
	// auditLog has the changes of all objects.
	auditLog string
	// stock, ours and controls are the paths of binaries.
	stock, ours, controls string
	// table has a row for each story that has been told.
	table []string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "contention", Bin: binFolder, Args: func(dir string) []string {
		world.dir, world.auditLog = dir, filepath.Join(dir, "audit.log")
		return []string{"--bare", "--audit-log=" + world.auditLog}
	}}.Main(m, func(ctx context.Context, d *rig.Devcluster, _ string) (end func() error, err error) {
		return printTable, prepare(ctx, d.Kubeconfig)
	}))
}

// prepare finds the binaries, and gives the accounts the rights of the manifests.
func prepare(ctx context.Context, kubeconfig string) (err error) {
	for _, b := range []struct {
		path         *string
		folder, name string
	}{{&world.ours, binFolder, "espalier-scheduler"}, {&world.controls, binFolder, "espalier-controller"}, {&world.stock, stockFolder, "kube-scheduler"}} {
		if b.folder == stockFolder {
			*b.path, err = rig.BinaryIn(b.folder, b.name)
		} else {
			*b.path, err = rig.Binary(b.name, b.folder)
		}
		if err != nil {
			return err
		}
	}
	if world.config, world.client, err = rig.Client(kubeconfig); err != nil {
		return err
	}
	if err := inTurn(ctx); err != nil {
		return err
	}
	world.kubeScheduler = filepath.Join(world.dir, "kube-scheduler.kubeconfig")
	if err := asKubeScheduler(kubeconfig, world.kubeScheduler); err != nil {
		return err
	}
	world.scheduler, world.controller = filepath.Join(world.dir, "scheduler.kubeconfig"), filepath.Join(world.dir, "controller.kubeconfig")
	applier, err := rig.Entitle(ctx, world.config, world.client, manifests.Files, world.scheduler)
	if err != nil {
		return err
	}
	if err := applier.Definitions(ctx, manifests.Files); err != nil {
		return err
	}
	if err := applier.Apply(ctx, manifests.Files, "components/arbiter/rbac.yaml", ""); err != nil {
		return err
	}
	if world.metricsToken, err = rig.ReaderToken(ctx, world.client, rig.SchedulerNamespace, "contention-metrics", "/metrics"); err != nil {
		return err
	}
	return rig.WriteKubeconfig(ctx, world.config, world.client, rig.ControllerName, world.controller)
}

// inTurn has the API server take some 25 requests of schedulers at a time, and let the others wait. A devcluster's takes 800 at once, and two
// cores do not get one of so many done within the second in which a webhook has to answer.
func inTurn(ctx context.Context) error {
	levels := world.client.FlowcontrolV1().PriorityLevelConfigurations()
	level, err := levels.Get(ctx, "workload-high", metav1.GetOptions{})
	if err != nil {
		return err
	}
	level.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] = "false"
	limited := level.Spec.Limited
	limited.NominalConcurrencyShares, limited.BorrowingLimitPercent = ptr.To[int32](1), ptr.To[int32](0)
	limited.LimitResponse.Queuing.QueueLengthLimit = 10000
	_, err = levels.Update(ctx, level, metav1.UpdateOptions{})
	return err
}

// asKubeScheduler writes a kubeconfig by which the administrator passes for the stock scheduler. An administrator's requests are taken by the
// API server however many there are at once, until none of them is answered in time, and no webhook either; those of schedulers in turn.
func asKubeScheduler(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:kube-scheduler"
	}
	return clientcmd.WriteToFile(*config, to)
}

// printTable prints the rows as docs/several-schedulers.md has them.
func printTable() error {
	if len(world.table) > 0 {
		fmt.Printf("\n| story | arbiter | pods beyond allocatable | that the arbiter let pass | bound, or in place of one that did not fit | time | bindings refused | made without an answer |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n%s\n",
			strings.Join(world.table, "\n"))
	}
	return nil
}
