// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/client"
)

// Options say how KWOK is run.
type Options struct {
	// Kubeconfig is the path of the kubeconfig that KWOK uses.
	Kubeconfig string
	// LeaseSeconds is how long the lease of a node lasts. KWOK renews it four times as often.
	LeaseSeconds uint
	// LogFile is the path of the file that the log is added to. Verbose logs each step, else only warnings are.
	LogFile string
	Verbose bool
}

// Run runs KWOK's controllers until the context ends. They play all nodes by the Stages that the API has.
//
// They run in this process. KWOK's own command also loads configuration files of kind Kustomization, and nothing uses that here: to build it
// takes a third again of the packages of KWOK, and one more binary.
func Run(ctx context.Context, o Options) error {
	file, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of KWOK: %w", err)
	}
	defer func() { _ = file.Close() }()
	level := log.LevelWarn
	if o.Verbose {
		level = log.LevelInfo
	}
	config, err := settings(o)
	if err != nil {
		return err
	}
	controller, err := controllers.NewController(config)
	if err != nil {
		return fmt.Errorf("configuring KWOK, see %s: %w", o.LogFile, err)
	}
	if err := controller.Start(log.NewContext(ctx, log.NewLogger(file, level))); err != nil {
		return fmt.Errorf("starting KWOK, see %s: %w", o.LogFile, err)
	}
	<-ctx.Done()
	return nil
}

// settings are those of KWOK's controllers. They have more workers than KWOK's default of four, so that a thousand pods of one Deployment run
// within seconds of being bound.
func settings(o Options) (controllers.Config, error) {
	config := controllers.Config{
		Clock: clock.RealClock{},
		// A selector would be handy to stop nodes, but KWOK takes none for a node without any label at all.
		ManageAllNodes:                true,
		CIDR:                          "10.128.0.0/9",
		NodeIP:                        "192.0.2.1", // for nodes that bring no address; kept free for documentation
		NodeLeaseDurationSeconds:      o.LeaseSeconds,
		PodPlayStageParallelism:       16,
		NodePlayStageParallelism:      16,
		NodeLeaseParallelism:          8,
		PodsOnNodeSyncParallelism:     4,
		EnablePodsOnNodeSyncListPager: true,
	}
	err := connect(&config, o.Kubeconfig)
	if err != nil {
		return config, fmt.Errorf("connecting KWOK to the API server: %w", err)
	}
	return config, nil
}

// connect gives KWOK its clients and its identity.
func connect(config *controllers.Config, kubeconfig string) (err error) {
	clients, err := client.NewClientset("", kubeconfig)
	if err != nil {
		return err
	}
	config.ImpersonatingDynamicClient = clients.ToImpersonatingDynamicClient()
	config.ImpersonatingTypedClient = clients.ToImpersonatingTypedClient()
	if config.ID, err = controllers.Identity(); err != nil {
		return err
	}
	if config.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return err
	}
	if config.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return err
	}
	server, err := clients.ToRESTConfig()
	if err != nil {
		return err
	}
	if config.RESTClient, err = rest.RESTClientFor(server); err != nil {
		return err
	}
	if config.TypedClient, err = kubernetes.NewForConfig(server); err != nil {
		return err
	}
	config.TypedKwokClient, err = versioned.NewForConfig(server)
	return err
}
