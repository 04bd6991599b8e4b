// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/pki"
)

// controllers are the parts of kube-controller-manager that run: those that make,
// count and remove pods, those that watch nodes, and those that volumes and resource
// claims of pending pods wait for. Services, load balancers and certificates have nothing
// behind them here, so nothing plays them. Autoscalers of pods need metrics, which somebody
// has to play: the first that asks for them in the API finds the controller there.
var controllers = []string{
	names.DeploymentController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.StatefulSetController,
	names.DaemonSetController,
	names.JobController,
	names.CronJobController,
	names.TTLAfterFinishedController,
	names.DisruptionController,
	names.HorizontalPodAutoscalerController,
	names.ResourceQuotaController,
	names.GarbageCollectorController,
	names.NamespaceController,
	names.PodGarbageCollectorController,
	names.NodeLifecycleController,
	names.TaintEvictionController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.RootCACertificatePublisherController,
	names.ClusterRoleAggregationController,
	names.PersistentVolumeBinderController,
	names.PersistentVolumeClaimProtectionController,
	names.PersistentVolumeProtectionController,
	names.EphemeralVolumeController,
	names.ResourceClaimController,
	// It runs with its feature gate only, and without it a PodGroup is never gone. Before 1.37 there is none.
	names.PodGroupProtectionController,
}

// controllerArgs are kube-controller-manager's flags. grace is how long a node that
// has fallen silent still counts as Ready, known are the controllers.
func controllerArgs(keys pki.PKI, kubeconfig string, grace time.Duration, known []string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(known, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + keys.Key("service-account"),
		"--root-ca-file=" + keys.Cert("ca"),
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--concurrent-replicaset-syncs=10",
		"--horizontal-pod-autoscaler-sync-period=2s",
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=" + grace.String(),
		// The default taints one silent node in ten seconds; stories about a zone
		// that goes would take minutes.
		"--node-eviction-rate=50",
		"--secondary-node-eviction-rate=50",
	}
}

// runControllers runs the controllers until ctx ends.
func (c *cluster) runControllers(ctx context.Context, kubeconfig string, grace time.Duration) error {
	if c.Kubernetes != "" {
		known := slices.DeleteFunc(slices.Clone(controllers), func(name string) bool { return name == names.PodGroupProtectionController })
		return c.runBinary(ctx, "kube-controller-manager", controllerArgs(c.keys, kubeconfig, grace, known))
	}
	manager, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("options of kube-controller-manager: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := manager.Flags(known, disabled, aliases)
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(controllerArgs(c.keys, kubeconfig, grace, controllers)); err != nil {
		return fmt.Errorf("arguments of kube-controller-manager: %w", err)
	}
	manager.ParsedFlags = &sets
	config, err := manager.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	if err := app.Run(ctx, config.Complete()); err != nil {
		return fmt.Errorf("running kube-controller-manager: %w", err)
	}
	return nil
}
