// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/espalier-scheduler/espalier/internal/informersync"
	"github.com/espalier-scheduler/espalier/internal/scheduler/endpoints"
	"github.com/espalier-scheduler/espalier/internal/scheduler/fence"
	"github.com/espalier-scheduler/espalier/internal/scheduler/kinds"
	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
	"github.com/espalier-scheduler/espalier/internal/tokenmask"
	"github.com/espalier-scheduler/espalier/internal/upstream"
)

// adapter is shown a scheduler before it runs, what it was configured with, and what ends it with an error.
type adapter func(context.Context, context.CancelCauseFunc, *cobra.Command, *schedulerserverconfig.CompletedConfig, *upstream.Scheduler) error

// newUpstreamCommand returns kube-scheduler's command as app.NewSchedulerCommand makes
// it, but for four things: adapt is shown the scheduler before it runs, which upstream's
// own keeps to itself, a former leader is fenced, tokens are kept out of the log, and
// informers that cannot be filled are named.
func newUpstreamCommand(name string, adapt adapter, around *fence.Fence, tracked *kinds.Informers, registry ...app.Option) *cobra.Command {
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use: name,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set() // feature gates must be set before RunE
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runUpstream(cmd, opts, adapt, around, tracked, registry)
		},
		Args: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if arg != "" {
					return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
				}
			}
			return nil
		},
	}
	sets := opts.Flags
	verflag.AddFlags(sets.FlagSet("global"))
	replicas.AddFlag(sets.FlagSet("leader election"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	// Which informers are not filled, and why, and which version is emulated is for whoever reaches the port, as /readyz itself is: who asks through the
	// API server has no name there.
	if open := cmd.Flags().Lookup("authorization-always-allow-paths"); open != nil {
		paths := slices.Concat(opts.Authorization.AlwaysAllowPaths, []string{"/readyz/" + informersync.Check, "/version"})
		opts.Authorization.AlwaysAllowPaths, open.DefValue = paths, "["+strings.Join(paths, ",")+"]"
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *sets, columns)
	if err := cmd.MarkFlagFilename("config", "yaml", "yml", "json"); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

func runUpstream(cmd *cobra.Command, opts *options.Options, adapt adapter, around *fence.Fence, tracked *kinds.Informers, registry []app.Option) error {
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := tokenmask.Apply(opts.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(cmd.Flags())
	if opts.InformerName == nil {
		informerName, err := cache.NewInformerName("kube-scheduler") // as in upstream's metrics
		if err != nil {
			return err
		}
		opts.InformerName = informerName
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	go func() {
		<-genericapiserver.SetupSignalHandler()
		end(nil)
	}()
	config, sched, err := app.Setup(ctx, opts, registry...)
	if err != nil {
		return err
	}
	gates.(featuregate.MutableFeatureGate).AddMetrics()
	opts.ComponentGlobalsRegistry.AddMetrics()
	if err := tracked.Enclose(config.Client, config.KubeConfig); err != nil { // unless a plugin of ours was made, as nearly always
		return err
	}
	legacyregistry.RawMustRegister(tracked)
	fail := func(cause error) {
		klog.FromContext(ctx).Error(cause, "Scheduler ends") // with leader election app.Run exits with status 0, and nobody is told
		end(cause)
	}
	if err := adapt(ctx, fail, cmd, config, sched); err != nil {
		return err
	}
	if err := around.Guard(config.LeaderElection, config.Client); err != nil {
		return err
	}
	if config.LeaderElection != nil {
		// It is the label of leader_election_master_status. Upstream calls every scheduler
		// of a cluster kube-scheduler there, and alerts have to tell them apart.
		config.LeaderElection.Name = config.ComponentConfig.LeaderElection.ResourceName
	}
	if serving := config.SecureServing; serving != nil {
		config.SecureServing = nil // app.Run serves nothing
		component := &config.ComponentConfig
		err := endpoints.Serve(ctx, endpoints.Options{
			Serving: serving, Authentication: config.Authentication.Authenticator, Authorization: config.Authorization.Authorizer,
			Election: config.LeaderElection, Leads: func() bool { return config.LeaderElection == nil || around.Leads() },
			Synced: func(ctx context.Context) error {
				// Not all informers have handlers of the scheduler: disruption budgets have none.
				return cmp.Or(config.InformerFactory.WaitForCacheSyncWithContext(ctx).AsError(), sched.WaitForHandlersSync(ctx))
			},
			Informers: tracked.Tracker, Resources: upstream.ResourceMetrics(config.InformerFactory.Core().V1().Pods().Lister()),
			Profiling: component.EnableProfiling, Contention: component.EnableContentionProfiling, Flagz: config.Flagz,
			Version: opts.ComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).Info(),
		})
		if err != nil {
			return err
		}
	}
	go tracked.Run(ctx)
	reviewer := config.Client.AuthorizationV1()
	go tracked.FollowRights(ctx, reviewer.SelfSubjectRulesReviews().Create, reviewer.SelfSubjectAccessReviews().Create)
	go func() {
		if err := tracked.Recovered(ctx); err != nil {
			fail(err)
		}
	}()
	err = app.Run(ctx, config, sched)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // upstream takes the end of the context for a lost lease
	}
	return err
}
