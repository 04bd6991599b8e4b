// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"github.com/espalier-scheduler/espalier/internal/scheduler/fence"
	"github.com/espalier-scheduler/espalier/internal/scheduler/preflight"
	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

const description = `espalier-scheduler places the pods that name it as their scheduler evenly over a
tree of topology levels. It is kube-scheduler with the plugins of Espalier, and
runs beside the cluster's default scheduler.

With --config it runs any KubeSchedulerConfiguration. Without, it runs the shipped
profile, which schedules pods with schedulerName: espalier-scheduler. The flags
--kubeconfig, --kube-api-qps, --kube-api-burst, --kube-api-content-type,
--profiling and --contention-profiling are laid over either.

Without --kubeconfig it uses the credentials of the pod that it runs in.`

// newCommand returns kube-scheduler's command with our plugins, profile and version.
func newCommand(version string) *cobra.Command {
	var options []app.Option
	around, active := fence.New(), replicas.New()
	for name, factory := range plugins.Registry() {
		options = append(options, app.WithPlugin(name, around.Before(factory)))
	}
	options = append(options, app.WithPlugin(replicas.Name, around.Before(active.Plugin)))
	cmd := newUpstreamCommand("espalier-scheduler", func(ctx context.Context, cmd *cobra.Command, config *schedulerserverconfig.CompletedConfig, sched *upstream.Scheduler) error {
		if err := adapt(ctx, cmd, config, sched); err != nil {
			return err
		}
		return share(ctx, around, active, config, sched)
	}, around, options...)
	cmd.Long = description
	// Help is a page long. After a mistyped flag you want to read which one it was.
	cmd.SilenceUsage = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.Name())
	})
	preflight.Describe(cmd.Flags())
	upstream := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if asksForVersion(cmd) {
			return nil
		}
		if err := upstream(cmd, args); err != nil {
			return err
		}
		if cmd.HasParent() { // completion, which needs no API server
			return nil
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		return preflight.Run(ctx, cmd.Flags(), manifests.SchedulerConfig, cmd.ErrOrStderr())
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if asksForVersion(cmd) {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "espalier-scheduler %s (Kubernetes %s)\n", version, kubernetesVersion())
			return err
		}
		return untilTold(func() error { return run(cmd, args) })
	}
	return cmd
}

// adapt gives the scheduler's profiles their fast path, has them confirm what they bind, keep pace with it and bind elsewhere what is
// refused, writes refusals beside, and has the queue look at fewer pods.
func adapt(ctx context.Context, cmd *cobra.Command, config *schedulerserverconfig.CompletedConfig, sched *upstream.Scheduler) error {
	client, err := upstream.NewClient(config.KubeConfig)
	if err != nil {
		return err
	}
	upstream.Confirm(sched.Profiles, client, fence.ErrFormerLeader)
	sched.FailureHandler = upstream.FailAsync(ctx, sched.Profiles, sched.Extenders, sched.FailureHandler)
	sched.NextEntity = upstream.Pace(sched.Profiles, upstream.Yield(sched.NextEntity))
	candidates, announced := bindings(config.ComponentConfig.Profiles)
	upstream.Rebind(sched, candidates)
	upstream.Announce(sched.Profiles, announced)
	sched.SchedulingQueue = upstream.Narrow(ctx, sched.SchedulingQueue, sched.Profiles, config.ComponentConfig.Profiles)
	cache, changes := upstream.Track(sched.Cache)
	sched.Cache = cache
	without := upstream.Wrap(klog.Background(), sched.Profiles, config.ComponentConfig.Profiles, changes, plugins.NodeLocal())
	for _, reason := range append(without, upstream.Sample(sched.Profiles)...) {
		cmd.PrintErrln("Warning:", reason)
	}
	return nil
}

// share has a scheduler place its share of the workloads, if it is one of several that are active at once.
func share(ctx context.Context, around *fence.Fence, active *replicas.Replicas, config *schedulerserverconfig.CompletedConfig, sched *upstream.Scheduler) error {
	if !active.On() {
		return nil
	}
	if err := active.Join(ctx, config.LeaderElection); err != nil {
		return err
	}
	around.Final()
	return upstream.Share(ctx, sched, config.InformerFactory.Core().V1().Pods().Lister(), replicas.Name, plugins.Single(), active)
}

// untilTold runs kube-scheduler, which ends in an error when it is terminated.
// That is no failure.
func untilTold(run func() error) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(told)
	err := run()
	select {
	case <-told:
		return nil
	default:
		return err
	}
}

// asksForVersion reports whether --version is given, before kube-scheduler answers
// it with the version of Kubernetes alone. (Given a version, --version=v1.37.0 asks
// nothing but sets what is reported.)
func asksForVersion(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("version")
	return f != nil && (f.Value.String() == string(verflag.VersionTrue) || f.Value.String() == string(verflag.VersionRaw))
}

// kubernetesVersion is the version of the module that the scheduler was built from.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	return "unknown"
}
