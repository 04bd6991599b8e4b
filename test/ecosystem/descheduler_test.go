// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// interval is the time between two runs of the descheduler.
const interval = 5 * time.Second

// descheduler starts the descheduler, which evicts by the constraints of pods.
func (s *story) descheduler() {
	s.Helper()
	binary, err := rig.Binary("descheduler", binFolder)
	s.must(err, "starting the descheduler")
	port, err := rig.FreePort()
	s.must(err, "starting the descheduler")
	s.neighbour("descheduler", binary, "--kubeconfig="+world.kubeconfig, "--policy-config-file=descheduler.yaml",
		"--descheduling-interval="+interval.String(), "--bind-address=127.0.0.1", "--secure-port="+port)
}

func (s *story) cordon(node string, closed bool) {
	s.Helper()
	patch := []byte(`{"spec":{"unschedulable":true}}`)
	if !closed {
		patch = []byte(`{"spec":{"unschedulable":null}}`)
	}
	_, err := world.client.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err, "cordoning or uncordoning "+node)
}

// A zone that comes back gets its share: the descheduler evicts, and Espalier places what it evicts where the descheduler wants it.
// Then both are quiet.
func TestDescheduler(t *testing.T) {
	s := begin(t)
	for i, nodes := range []int{3, 2, 1} {
		for n := range nodes {
			s.node(string(rune('a'+i)), n)
		}
	}
	away := s.ns + "-c-0"
	s.cordon(away, true)
	s.deploy(12, map[string]string{"story": s.ns}, corev1.LabelTopologyZone)
	s.even(12, 6, 6)
	s.descheduler()
	s.cordon(away, false)
	s.even(12, 4, 4, 4)
	s.quiet()
	s.even(12, 4, 4, 4)
}

// With a constraint over hosts beside that over zones, and zones of unequal numbers of hosts, it leaves the pods where they are.
func TestDeschedulerOverZonesAndHosts(t *testing.T) {
	s := begin(t)
	for i, nodes := range []int{5, 2, 2} {
		for n := range nodes {
			s.node(string(rune('a'+i)), n)
		}
	}
	s.deploy(21, map[string]string{"story": s.ns}, corev1.LabelTopologyZone, corev1.LabelHostname)
	s.even(21, 7, 7, 7)
	s.descheduler()
	s.quiet()
	s.even(21, 7, 7, 7)
}
