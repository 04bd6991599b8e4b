// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory says which nodes a local control plane has: a regular grid of
// zones and racks, or the nodes of a file.
package inventory

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RackLabel is the label of the level below the zone, which Kubernetes has no name for.
const RackLabel = "example.com/rack"

const (
	region   = "region-1"
	maxNodes = 100_000
	maxZones = 26 * 26
)

// Grid is a regular inventory. Nodes are dealt out round robin: to the zones, and
// inside a zone to its racks, so counts differ by one at most at each level.
type Grid struct {
	Nodes int // how many; 0 for none
	Zones int // at least 1
	Racks int // in each zone, at least 1

	// Room of every node, as Kubernetes quantities.
	CPU, Memory, Pods string
}

// Generate returns the nodes of the grid, in the order of their names.
func (g Grid) Generate() ([]*corev1.Node, error) {
	capacity, err := g.check()
	if err != nil {
		return nil, err
	}
	nodes := make([]*corev1.Node, 0, g.Nodes)
	for i := range g.Nodes {
		zone := "zone-" + letters(i%g.Zones)
		rack := fmt.Sprintf("%s-rack-%d", zone, i/g.Zones%g.Racks+1)
		nodes = append(nodes, newNode(fmt.Sprintf("node-%03d", i), zone, rack, address(i), capacity))
	}
	return nodes, nil
}

func (g Grid) check() (corev1.ResourceList, error) {
	for _, bound := range []struct {
		flag            string
		value, min, max int
	}{
		{"--nodes", g.Nodes, 0, maxNodes},
		{"--zones", g.Zones, 1, maxZones},
		{"--racks", g.Racks, 1, maxNodes},
	} {
		if bound.value < bound.min || bound.value > bound.max {
			return nil, fmt.Errorf("%s=%d: must be between %d and %d", bound.flag, bound.value, bound.min, bound.max)
		}
	}
	capacity := corev1.ResourceList{}
	for _, room := range []struct {
		flag, value string
		name        corev1.ResourceName
	}{
		{"--node-cpu", g.CPU, corev1.ResourceCPU},
		{"--node-memory", g.Memory, corev1.ResourceMemory},
		{"--node-pods", g.Pods, corev1.ResourcePods},
	} {
		quantity, err := resource.ParseQuantity(room.value)
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s=%q: not a quantity of Kubernetes such as 32 or 256Gi", room.flag, room.value)
		}
		capacity[room.name] = quantity
	}
	return capacity, nil
}

func newNode(name, zone, rack, ip string, capacity corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelTopologyRegion: region,
				corev1.LabelTopologyZone:   zone,
				RackLabel:                  rack,
				corev1.LabelOSStable:       "linux",
				corev1.LabelArchStable:     "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity.DeepCopy(),
			Allocatable: capacity.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: ip},
				{Type: corev1.NodeHostName, Address: name},
			},
		},
	}
}

// letters counts a, b, … z, aa, ab, … as a person names zones.
func letters(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return letters(i/26-1) + string(rune('a'+i%26))
}

// address gives node i an address of its own below the pods' half of 10/8.
func address(i int) string {
	i += 256 // from 10.0.1.0 on: 10.0.0.0 reads like a network, not a node
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}
