// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/apis/config"
	"k8s.io/kubernetes/pkg/controller/apis/config/scheme"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/pki"
)

// Configuration returns kube-controller-manager's configuration: Kubernetes' defaults, and what a devcluster changes of them. grace is how long a
// node that has fallen silent still counts as Ready.
func Configuration(kubeconfig string, keys pki.PKI, grace time.Duration) (*config.KubeControllerManagerConfiguration, error) {
	var defaults v1alpha1.KubeControllerManagerConfiguration
	scheme.Scheme.Default(&defaults)
	c := &config.KubeControllerManagerConfiguration{}
	if err := scheme.Scheme.Convert(&defaults, c, nil); err != nil {
		return nil, fmt.Errorf("defaults of kube-controller-manager: %w", err)
	}
	c.Generic.ClientConnection.Kubeconfig = kubeconfig
	c.Generic.ClientConnection.QPS = 2000
	c.Generic.ClientConnection.Burst = 4000
	c.SAController.ServiceAccountKeyFile = keys.Key("service-account")
	c.SAController.RootCAFile = keys.Cert("ca")
	c.ReplicaSetController.ConcurrentRSSyncs = 10
	c.HPAController.HorizontalPodAutoscalerSyncPeriod.Duration = 2 * time.Second
	nodes := &c.NodeLifecycleController
	nodes.NodeMonitorPeriod.Duration = time.Second
	nodes.NodeMonitorGracePeriod.Duration = grace
	// The default taints one silent node in ten seconds; stories about a zone
	// that goes would take minutes.
	nodes.NodeEvictionRate = 50
	nodes.SecondaryNodeEvictionRate = 50
	// Flags have these defaults, the configuration has none: cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go.
	nodes.LargeClusterSizeThreshold = 50
	nodes.UnhealthyZoneThreshold = 0.55
	return c, nil
}

// Args are the flags that have the kube-controller-manager of another version run the same controllers, as far as the version has them.
func Args(c *config.KubeControllerManagerConfiguration, is *version.Version) []string {
	var known []string
	for _, controller := range controllers {
		if controller.name != names.PodGroupProtectionController || !is.LessThan(version.MajorMinor(1, 37)) {
			known = append(known, controller.name)
		}
	}
	return []string{
		"--kubeconfig=" + c.Generic.ClientConnection.Kubeconfig,
		"--controllers=" + strings.Join(known, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + c.SAController.ServiceAccountKeyFile,
		"--root-ca-file=" + c.SAController.RootCAFile,
		fmt.Sprintf("--kube-api-qps=%g", c.Generic.ClientConnection.QPS),
		fmt.Sprintf("--kube-api-burst=%d", c.Generic.ClientConnection.Burst),
		fmt.Sprintf("--concurrent-replicaset-syncs=%d", c.ReplicaSetController.ConcurrentRSSyncs),
		"--horizontal-pod-autoscaler-sync-period=" + c.HPAController.HorizontalPodAutoscalerSyncPeriod.Duration.String(),
		"--node-monitor-period=" + c.NodeLifecycleController.NodeMonitorPeriod.Duration.String(),
		"--node-monitor-grace-period=" + c.NodeLifecycleController.NodeMonitorGracePeriod.Duration.String(),
		fmt.Sprintf("--node-eviction-rate=%g", c.NodeLifecycleController.NodeEvictionRate),
		fmt.Sprintf("--secondary-node-eviction-rate=%g", c.NodeLifecycleController.SecondaryNodeEvictionRate),
	}
}
