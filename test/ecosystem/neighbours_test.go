// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// interval is the time between two runs of the descheduler.
const interval = 5 * time.Second

// descheduler starts the descheduler, which evicts by the constraints of pods.
func (s *story) descheduler() {
	s.Helper()
	binary, err := rig.Binary("descheduler", binFolder)
	s.Must(err, "starting the descheduler")
	port, err := rig.FreePort()
	s.Must(err, "starting the descheduler")
	s.neighbour("descheduler", binary, "--kubeconfig="+world.kubeconfig, "--policy-config-file=descheduler.yaml",
		"--descheduling-interval="+interval.String(), "--bind-address=127.0.0.1", "--secure-port="+port)
}

// A zone that comes back gets its share: the descheduler evicts, and Espalier places what it evicts where the descheduler wants it.
// Then both are quiet.
func TestDescheduler(t *testing.T) {
	s := begin(t)
	s.zonesOf(3, 2, 1)
	away := s.NS + "-c-0"
	s.Cordon(away, true)
	s.deploy(12, map[string]string{"story": s.NS}, corev1.LabelTopologyZone)
	s.even(12, 6, 6)
	s.descheduler()
	s.Cordon(away, false)
	s.even(12, 4, 4, 4)
	s.quiet()
	s.even(12, 4, 4, 4)
}

// With a constraint over hosts beside that over zones, and zones of unequal numbers of hosts, it leaves the pods where they are.
func TestDeschedulerOverZonesAndHosts(t *testing.T) {
	s := begin(t)
	s.zonesOf(5, 2, 2)
	s.deploy(21, map[string]string{"story": s.NS}, corev1.LabelTopologyZone, corev1.LabelHostname)
	s.even(21, 7, 7, 7)
	s.descheduler()
	s.quiet()
	s.even(21, 7, 7, 7)
}

// Zones that must not differ by more than one, and hosts that should be even, in zones of unequal numbers of hosts: both cannot be had. The
// descheduler evicts pods for it in each of its runs, which come back to the same hosts. Espalier moves none.
func TestConstraintsThatCannotBothBeMet(t *testing.T) {
	s := begin(t)
	s.zonesOf(5, 2, 2)
	s.rebalanced()
	s.deployOver(9, map[string]string{"story": s.NS}, 3, corev1.LabelHostname)
	s.even(9, 3, 3, 3)
	made := s.made()
	time.Sleep(6 * interval)
	if n := made(); n > 0 || s.moves() > 0 {
		t.Errorf("without the descheduler %d pods were made again, by %d Moves", n, s.moves())
	}
	s.descheduler()
	const evictions = 5
	s.Until("the descheduler to have evicted pods again and again", func() error {
		if n := made(); n < evictions {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
	s.Logf("the descheduler has evicted %d pods, and Espalier has moved %d", made(), s.moves())
	if n := s.moves(); n > 0 {
		t.Errorf("there were %d Moves", n)
	}
}

// A zone comes back, once with Moves and once with the descheduler. It gets its share either way. Moves are as many as it takes, and never fewer
// pods are ready than wanted.
func TestZoneReturnsByMovesAndByEvictions(t *testing.T) {
	evicted := make(map[string]int)
	for _, by := range []string{"moves", "evictions"} {
		t.Run(by, func(t *testing.T) {
			s := begin(t)
			s.zonesOf(1, 1, 1)
			away := s.NS + "-c-0"
			s.Cordon(away, true)
			s.deploy(30, map[string]string{"story": s.NS}, corev1.LabelTopologyZone)
			s.even(30, 15, 15)
			made, below := s.made(), s.below(30)
			s.Cordon(away, false)
			if by == "moves" {
				s.rebalanced()
			} else {
				s.descheduler()
			}
			begun := time.Now()
			s.even(30, 10, 10, 10)
			took := time.Since(begun)
			time.Sleep(3 * interval)
			s.even(30, 10, 10, 10)
			evicted[by] = made()
			short := below()
			s.Logf("%s: zones are even after %s; %d pods were made again, and fewer than 30 were ready for %s", by, took.Round(time.Second), evicted[by], short.Round(time.Millisecond))
			if by == "moves" && short > 0 {
				t.Errorf("fewer than 30 pods were ready for %s", short)
			}
		})
	}
	if evicted["moves"] != 10 || evicted["moves"] > evicted["evictions"] {
		t.Errorf("%d pods were moved, and %d evicted by the descheduler, want 10 at most", evicted["moves"], evicted["evictions"])
	}
}

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
