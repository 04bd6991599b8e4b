// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/progress"
	"github.com/espalier-scheduler/espalier/internal/serverversion"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/manifests"
)

// common is what all commands share.
type common struct {
	kube *genericclioptions.ConfigFlags
	// file is a snapshot to read in place of the cluster, "" for the cluster.
	file string
	// config is a KubeSchedulerConfiguration in a file, "" for the shipped one.
	config string
	// shown says how far a command is, nil before anything is shown.
	shown *progress.Bar
}

// bar says how far a command is.
func (c *common) bar(cmd *cobra.Command) *progress.Bar {
	if c.shown == nil {
		c.shown = progress.New(cmd.ErrOrStderr())
	}
	return c.shown
}

func newCommand(version string, streams genericiooptions.IOStreams) *cobra.Command {
	c := &common{kube: genericclioptions.NewConfigFlags(true)}
	c.kube.CacheDir = nil // nothing is kept
	cmd := &cobra.Command{
		Use:           "kubectl-espalier",
		Short:         "Show how workloads are spread, why, and where pods would go",
		Long:          "Show how workloads are spread, why, and where pods would go.\n\nThe scheduler's own plugins give the answers. Nothing is written to the cluster.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl espalier"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	c.kube.AddFlags(cmd.PersistentFlags())
	c.completeKubeFlags(cmd)
	cmd.AddCommand(c.newTree(), c.newExplain(), c.newBalance(), c.newSimulate(), c.newLint(), c.newConvert(), c.newFaults(), c.newMoves(), c.newQueue(), c.newDoctor(), c.newSnapshot())
	return cmd
}

// addSource adds the flags that say what is looked at, and by which scheduler.
func (c *common) addSource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.file, "snapshot", "", "read this file, which the command snapshot has written, and not the cluster")
	cmd.Flags().StringVar(&c.config, "scheduler-config", "", "the KubeSchedulerConfiguration that the scheduler runs with; empty for the shipped one")
}

// api is a client of the cluster.
func (c *common) api() (client.Client, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 300
	api, err := client.New(config, client.Options{Scheme: snapshot.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	return api, nil
}

// read reads the snapshot, or the cluster.
func (c *common) read(cmd *cobra.Command) (*snapshot.Snapshot, error) {
	if c.file != "" {
		in, err := os.Open(c.file)
		if err != nil {
			return nil, plain(err)
		}
		defer func() { _ = in.Close() }()
		s, err := snapshot.ReadFile(&fileReader{File: in, bar: c.bar(cmd)})
		c.bar(cmd).End()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		return s, nil
	}
	api, err := c.api()
	if err != nil {
		return nil, err
	}
	asking, err := c.kube.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	version, err := asking.ServerVersion()
	switch {
	case apierrors.IsForbidden(err):
		version = &apimachineryversion.Info{} // who may not ask learns all else
	case err != nil:
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	defer c.bar(cmd).End()
	return snapshot.Read(cmd.Context(), api, serverversion.Text(version), time.Now(), func(what string, kind, kinds, objects int) {
		c.bar(cmd).Show(kind, kinds, fmt.Sprintf("reading %s, %d objects so far", what, objects))
	})
}

// fileReader reads a file, and says how far it is.
type fileReader struct {
	*os.File

	bar       *progress.Bar
	read, all int64
}

func (f *fileReader) Read(into []byte) (int, error) {
	n, err := f.File.Read(into)
	if f.all == 0 {
		if info, err := f.Stat(); err == nil {
			f.all = info.Size()
		}
	}
	f.read += int64(n)
	f.bar.Show(int(f.read>>20), int(f.all>>20), "MiB of "+f.Name()+" read")
	return n, err
}

// configuration reads the scheduler's.
func (c *common) configuration() ([]byte, error) {
	if c.config == "" {
		return manifests.SchedulerConfig, nil
	}
	text, err := os.ReadFile(c.config)
	if err != nil {
		return nil, plain(err)
	}
	return text, nil
}

// open starts the scheduler over what is read, with an answer of the filters for each node. It says what could not be read.
func (c *common) open(cmd *cobra.Command) (*inspect.Cluster, error) {
	return c.openUntil(cmd.Context(), cmd)
}

// openUntil is that for as long as a context lasts.
func (c *common) openUntil(ctx context.Context, cmd *cobra.Command) (*inspect.Cluster, error) {
	s, configuration, err := c.source(cmd)
	if err != nil {
		return nil, err
	}
	warn(cmd, s.Unread)
	c.bar(cmd).Show(0, 0, fmt.Sprintf("having a scheduler look at %d objects", len(s.Objects)))
	cluster, err := inspect.Open(ctx, s, configuration, inspect.AllNodes)
	c.bar(cmd).End()
	if err != nil {
		return nil, err
	}
	for _, note := range cluster.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", note)
	}
	return cluster, nil
}

// source reads what is looked at, and the scheduler's configuration.
func (c *common) source(cmd *cobra.Command) (*snapshot.Snapshot, []byte, error) {
	s, err := c.read(cmd)
	if err != nil {
		return nil, nil, err
	}
	configuration, err := c.configuration()
	return s, configuration, err
}

// namespace is that of the flag, or of the kubeconfig's context.
func (c *common) namespace() (string, error) {
	namespace, _, err := c.kube.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}
