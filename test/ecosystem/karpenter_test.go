// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// poolLabel is on the nodes of a NodePool.
const poolLabel = "karpenter.sh/nodepool"

// karpenter starts Karpenter with its kinds and a NodePool.
func (s *story) karpenter() {
	s.Helper()
	list := exec.CommandContext(s.Ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	list.Dir = "../../hack/tools/karpenter"
	out, err := list.Output()
	s.Must(err, "asking where Karpenter's sources are")
	sources := strings.TrimSpace(string(out))
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		names, err := filepath.Glob(filepath.Join(sources, folder, "*.yaml"))
		if err != nil || len(names) == 0 {
			s.Fatalf("there are no kinds in %s: %v", folder, err)
		}
		for _, name := range names {
			s.Must(s.apply(filepath.Join(sources, folder), filepath.Base(name)), "installing Karpenter's kinds")
		}
	}
	metrics, err := rig.FreePort()
	s.Must(err, "starting Karpenter")
	probes, err := rig.FreePort()
	s.Must(err, "starting Karpenter")
	binary, err := rig.Binary("karpenter", binFolder)
	s.Must(err, "starting Karpenter")
	s.neighbour("karpenter", "/usr/bin/env", "KUBECONFIG="+world.kubeconfig, "SYSTEM_NAMESPACE=kube-system", "KARPENTER_SERVICE=karpenter",
		"DISABLE_LEADER_ELECTION=true", "METRICS_PORT="+metrics, "HEALTH_PROBE_PORT="+probes, binary)
	s.Until("the NodePool", func() error { return s.apply(".", "nodepool.yaml") })
}

// pool returns the nodes of the NodePool.
func (s *story) pool() []corev1.Node {
	s.Helper()
	nodes, err := world.client.CoreV1().Nodes().List(s.Ctx, metav1.ListOptions{LabelSelector: poolLabel})
	s.Must(err, "listing nodes")
	return nodes.Items
}

// A Deployment with no room gets nodes in three zones. It is even when it has them, when half of it is gone and the nodes are
// consolidated, and when a node is drained. Then nothing is moved. It is told to keep to three zones: one that has lost its last node is
// no zone to any scheduler, and Karpenter gives it none back as long as there is room elsewhere.
func TestKarpenter(t *testing.T) {
	s := begin(t)
	s.karpenter()
	s.deployOver(18, map[string]string{poolLabel: "stories"}, 3, corev1.LabelTopologyZone)
	s.even(18, 6, 6, 6)
	s.Logf("18 pods on %d nodes", len(s.pool()))

	s.Scale("app", 6)
	before := len(s.pool())
	s.Until("fewer nodes", func() error {
		if n := len(s.pool()); n >= before {
			return fmt.Errorf("there are %d, as before", n)
		}
		return nil
	})
	s.even(6, 2, 2, 2)
	s.Logf("6 pods on %d nodes", len(s.pool()))

	node := s.pool()[0].Name
	s.Must(world.client.CoreV1().Nodes().Delete(s.Ctx, node, metav1.DeleteOptions{}), "deleting a node")
	s.Until("the node to be drained and gone", func() error {
		for _, n := range s.pool() {
			if n.Name == node {
				return fmt.Errorf("%s is there", node)
			}
		}
		return nil
	})
	s.even(6, 2, 2, 2)
	s.quiet()
	s.even(6, 2, 2, 2)
}
