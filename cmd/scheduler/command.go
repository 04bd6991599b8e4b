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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/internal/scheduler/fence"
	"github.com/espalier-scheduler/espalier/internal/scheduler/kinds"
	"github.com/espalier-scheduler/espalier/internal/scheduler/preflight"
	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
	"github.com/espalier-scheduler/espalier/internal/scheduler/versionwatch"
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
	around, active, tracked := fence.New(), replicas.New(), kinds.NewInformers(clock.RealClock{})
	byHand := false // which version is emulated
	for name, factory := range plugins.Registry() {
		options = append(options, app.WithPlugin(name, tracked.Before(around.Before(factory))))
	}
	options = append(options, app.WithPlugin(replicas.Name, tracked.Before(around.Before(active.Plugin))))
	cmd := newUpstreamCommand("espalier-scheduler", func(ctx context.Context, end context.CancelCauseFunc, cmd *cobra.Command, config *schedulerserverconfig.CompletedConfig, sched *upstream.Scheduler) error {
		if !byHand {
			if err := versionwatch.Start(ctx, end, config.KubeConfig); err != nil {
				return err
			}
		}
		return adapt(ctx, cmd, around, active, tracked, config, sched)
	}, around, tracked, options...)
	cmd.Long = description
	// Help is a page long. After a mistyped flag you want to read which one it was.
	cmd.SilenceUsage = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.Name())
	})
	preflight.Describe(cmd.Flags())
	setGates := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if asksForVersion(cmd) {
			return nil
		}
		if cmd.HasParent() { // completion, which needs no API server
			return setGates(cmd, args)
		}
		byHand = cmd.Flags().Changed(preflight.EmulatedVersion)
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		return preflight.Run(ctx, cmd.Flags(), manifests.SchedulerConfig, func() error { return setGates(cmd, args) }, cmd.ErrOrStderr())
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

// adapt has a scheduler do what kube-scheduler does not, as one of several that are active at once if it is.
func adapt(ctx context.Context, cmd *cobra.Command, around *fence.Fence, active *replicas.Replicas, tracked *kinds.Informers, config *schedulerserverconfig.CompletedConfig, sched *upstream.Scheduler) error {
	client, err := upstream.NewClient(config.KubeConfig)
	if err != nil {
		return err
	}
	profiles := config.ComponentConfig.Profiles
	options := upstream.Options{Profiles: profiles, NodeLocal: plugins.NodeLocal(), Client: client, Unsent: fence.ErrFormerLeader}
	options.Withheld = func(pod *corev1.Pod) error { return kinds.Wait(pod, tracked) }
	options.Candidates, options.Announced = bindings(profiles)
	if active.On() {
		if err := active.Join(ctx, config.LeaderElection); err != nil {
			return err
		}
		around.Final()
		options.Share = &upstream.Sharing{
			Owner: active, Plugin: replicas.Name, Single: plugins.Single(), Pods: config.InformerFactory.Core().V1().Pods().Lister(),
		}
	}
	warnings, err := upstream.Adapt(ctx, sched, options)
	for _, reason := range warnings {
		cmd.PrintErrln("Warning:", reason)
	}
	return err
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
