// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CommonEnv names the kubeconfig of a devcluster that suites share, one after the other. Where it is not set, each starts its own.
const CommonEnv = "ESPALIER_TEST_KUBECONFIG"

const commonNodes = 12

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
				return UntilInterrupted(ctx, tests)
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
	if len(nodes.Items) != commonNodes {
		return 1, fmt.Errorf("%s=%s: the cluster has %d nodes; start one with `devcluster up %s`", CommonEnv, kubeconfig, len(nodes.Items), strings.Join(common, " "))
	}
	before, err := Contents(ctx, config)
	if err != nil {
		return 1, err
	}
	code, err = tell(&Devcluster{Kubeconfig: kubeconfig})
	return code, errors.Join(err, Restore(context.WithoutCancel(ctx), config, before))
}
