// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CommonEnv names the kubeconfig of a devcluster that suites share, one after the other. Where it is not set, each starts its own.
const CommonEnv = "ESPALIER_TEST_KUBECONFIG"

const commonNodes = 12

// rackLabel is that of devcluster.
const rackLabel = "example.com/rack"

// common is how to start a devcluster that suites share: what one of them needs, and what is in the way of none.
var common = []string{
	fmt.Sprint("--nodes=", commonNodes), "--zones=3", "--racks=2", "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true",
}

// Suite is a package of stories that have one control plane.
type Suite struct {
	Name string
	// Bin is the folder of devcluster.
	Bin string
	// Args are those of devcluster up, given the folder of the suite. Nil is for a suite that shares a devcluster with others: it
	// must leave what is there as it was, and what it adds is removed after it.
	Args func(dir string) []string
	// Core is what is told with -short, nil for all.
	Core *Core
}

// Main prepares a suite, tells its stories, and returns the status that their process is to end with. An interrupt ends them. Before the
// devcluster ends, or is left to others, whatever prepare returns is called.
func (s Suite) Main(tests interface{ Run() int }, prepare func(ctx context.Context, d *Devcluster, dir string) (end func() error, err error)) int {
	flag.Parse()
	if Listing() {
		return tests.Run()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return Main(s.Name, func() (int, error) {
		return InFolder(s.Name, func(dir string) (int, error) {
			return s.on(ctx, dir, func(d *Devcluster) (code int, err error) {
				end, err := prepare(ctx, d, dir)
				if end != nil {
					defer func() { err = errors.Join(err, end()) }()
				}
				if err != nil {
					return 1, err
				}
				if code, err = UntilInterrupted(ctx, tests); code == 0 && err == nil {
					err = s.Core.check()
				}
				return code, err
			})
		})
	})
}

// on gives the suite its devcluster. Of one that is shared only the kubeconfig is known.
func (s Suite) on(ctx context.Context, dir string, tell func(*Devcluster) (int, error)) (code int, err error) {
	kubeconfig := os.Getenv(CommonEnv)
	switch {
	case s.Args != nil:
		return OnDevcluster(ctx, s.Name, s.Bin, dir, s.Args(dir), tell)
	case kubeconfig == "":
		return OnDevcluster(ctx, s.Name, s.Bin, dir, common, tell)
	}
	config, client, err := Client(kubeconfig)
	if err != nil {
		return 1, fmt.Errorf("%s: %w", CommonEnv, err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 1, fmt.Errorf("%s=%s: %w", CommonEnv, kubeconfig, err)
	}
	// Whatever comes while a suite runs is removed after it. That must be nobody else's.
	if host, err := url.Parse(config.Host); err != nil || host.Hostname() != "127.0.0.1" || len(nodes.Items) != commonNodes || !slices.ContainsFunc(nodes.Items, isOfDevcluster) {
		return 1, fmt.Errorf("%s=%s: the cluster at %s, which has %d nodes, is not the one that suites share; start one with `devcluster up %s`",
			CommonEnv, kubeconfig, config.Host, len(nodes.Items), strings.Join(common, " "))
	}
	before, err := Contents(ctx, config)
	if err != nil {
		return 1, err
	}
	code, err = tell(&Devcluster{Kubeconfig: kubeconfig})
	return code, errors.Join(err, Restore(context.WithoutCancel(ctx), config, before))
}

// isOfDevcluster reports whether a node has the rack that devcluster gives each of its own.
func isOfDevcluster(node corev1.Node) bool {
	return strings.HasPrefix(node.Labels[rackLabel], node.Labels[corev1.LabelTopologyZone]+"-rack-")
}
