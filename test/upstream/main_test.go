// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../bin"
	// profiles is the configuration that puts Espalier in the default scheduler's place, under its name too.
	profiles = "../../manifests/overlays/replace-default/scheduler-config.yaml"
	// gate turns gangs on, in the API server and in the scheduler; api has the API server serve their kinds.
	gate = "--feature-gates=GenericWorkload=true"
	api  = "--runtime-config=scheduling.k8s.io/v1beta1=true"
)

// settings are the flags of the specs' framework that this cluster needs. They may be given otherwise.
var settings = map[string]string{
	"provider":                    "skeleton", // no cloud
	"num-nodes":                   "4",        // those of nodes.yaml
	"e2e-verify-service-account":  "false",    // nothing in a played container uses one
	"gather-resource-usage":       "none",     // nobody plays cAdvisor
	"ginkgo.v":                    "true",
	"ginkgo.timeout":              "55m",
	"ginkgo.github-output":        "false",
	"ginkgo.silence-skips":        "false",
	"ginkgo.poll-progress-after":  "0s",
	"ginkgo.fail-on-empty":        "true",
	"allowed-not-ready-nodes":     "0",
	"dump-logs-on-failure":        "true",
	"system-pods-startup-timeout": "1m",
}

// skipped are the specs that are not run, by a part of the name, and why. docs/autoscalers.md has them too.
var skipped = map[string]string{
	"with the async preemption":                      "KWOK takes off the finalizers of a pod that is to be deleted, which the spec has put on",
	"PodTopologySpread Preemption":                   "KWOK deletes pods by name alone: one that is made anew at once goes with the one before",
	"preferably scheduled to nodes pod can tolerate": "a soft taint counts inside a zone, and not between zones: one in which all nodes have some is as good as another",
}

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := flag.Set(name, settings[name]); err != nil {
			fmt.Fprintf(os.Stderr, "upstream: -%s=%s: %v\n", name, settings[name], err)
			os.Exit(1)
		}
	}
	if err := flag.Set("ginkgo.skip", strings.Join(slices.Sorted(maps.Keys(skipped)), "|")); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := rig.Main("upstream", func() (int, error) {
		return rig.InFolder("upstream", func(dir string) (int, error) {
			args := []string{"--nodes-file=nodes.yaml", gate, api}
			return rig.OnDevcluster(ctx, "upstream", binFolder, dir, args, func(d *rig.Devcluster) (int, error) {
				return run(ctx, d.Kubeconfig, dir, m)
			})
		})
	})
	cancel()
	os.Exit(code)
}

// run has Espalier schedule the pods of a cluster, and runs the specs there.
//
// The scheduler has an administrator's rights. Those of the manifests are held to what it does elsewhere.
func run(ctx context.Context, kubeconfig, dir string, m *testing.M) (code int, err error) {
	_, client, err := rig.Client(kubeconfig)
	if err != nil {
		return 1, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return 1, err
	}
	scheduler, err := rig.StartScheduler(rig.SchedulerOptions{
		Binary: binary, Kubeconfig: kubeconfig, Dir: dir, Args: []string{"--config=" + profiles, gate},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := scheduler.StopCleanly(15 * time.Second); err == nil {
			err = stopped
		}
	}()
	if err := runSystemPods(ctx, client); err != nil {
		return 1, err
	}
	offering, cancel := context.WithCancel(ctx)
	defer cancel()
	go offer(offering, client)
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(os.Stderr, "upstream: not run: %q: %s\n", name, skipped[name])
	}
	framework.TestContext.KubeConfig = kubeconfig
	framework.AfterReadingAllFlags(&framework.TestContext)
	return rig.UntilInterrupted(ctx, m)
}
