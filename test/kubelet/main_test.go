// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

var (
	kubeconfigFlag = flag.String("kubeconfig", "", "administrator's kubeconfig of a cluster of kind that runs the scheduler")
	imageFlag      = flag.String("image", "", "the image of test/kubelet/workload, loaded into all nodes")
)

// world is the cluster, and the client that all stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	image  string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare() (err error) {
	if *kubeconfigFlag == "" || *imageFlag == "" {
		return errors.New("-kubeconfig or -image is not given: these stories need a cluster of kind, which make e2e-kind makes")
	}
	world.image = *imageFlag
	world.config, world.client, err = rig.Client(*kubeconfigFlag)
	return err
}
