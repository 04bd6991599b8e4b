// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// namespace is where the example workloads go.
const namespace = "demo"

// stage is the running cluster and the running scheduler.
type stage struct {
	say       *narrator
	dir       string
	keepLogs  bool
	cluster   *rig.Devcluster
	scheduler *rig.Process
	client    kubernetes.Interface
	applier   *rig.Applier
	// labels are those of the nodes, by name; they do not change.
	labels map[string]map[string]string
}

// build starts everything. The stage it returns has to be struck even if there is an error.
func build(ctx context.Context, say *narrator) (*stage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the binaries: %w", err)
	}
	bin := filepath.Dir(self)
	dir, err := os.MkdirTemp("", "espalier-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{say: say, dir: dir}
	devcluster, err := rig.Binary("devcluster", bin)
	if err != nil {
		return s, err
	}
	scheduler, err := rig.Binary("espalier-scheduler", bin)
	if err != nil {
		return s, err
	}
	say.line("starting a cluster: etcd, kube-apiserver, the workload controllers, 24 nodes in 3 zones of 2 racks")
	s.cluster, err = rig.StartDevcluster(ctx, rig.DevclusterOptions{
		Binary: devcluster, Dir: dir, Args: []string{"--nodes=24", "--zones=3", "--racks=2"}, Progress: say,
	})
	if err != nil {
		return s, err
	}
	config, client, err := rig.Client(s.cluster.Kubeconfig)
	if err != nil {
		return s, err
	}
	s.client = client
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("listing the nodes: %w", err)
	}
	s.labels = map[string]map[string]string{}
	for _, n := range nodes.Items {
		s.labels[n.Name] = n.Labels
	}
	say.line("starting bin/espalier-scheduler with the service account and the rights of manifests/base")
	kubeconfig := filepath.Join(dir, "scheduler.kubeconfig")
	if s.applier, err = rig.Entitle(ctx, config, client, manifests.Files, kubeconfig); err != nil {
		return s, err
	}
	s.scheduler, err = rig.StartScheduler(rig.SchedulerOptions{Binary: scheduler, Kubeconfig: kubeconfig, Dir: dir})
	return s, err
}

// ended reports whether a process of the stage is gone that should not be.
func (s *stage) ended() error {
	for _, p := range []*rig.Process{s.scheduler, s.cluster.Process} {
		select {
		case <-p.Done():
			return p.Err()
		default:
		}
	}
	return nil
}

// strike ends everything, the scheduler first: it would only complain about a cluster that is gone.
func (s *stage) strike() error {
	var errs []error
	if s.scheduler != nil {
		errs = append(errs, s.scheduler.StopCleanly(10*time.Second))
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop(30*time.Second))
	}
	err := errors.Join(errs...)
	if err == nil && !s.keepLogs {
		err = os.RemoveAll(s.dir)
	}
	return err
}
