// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PoolLabel is on the nodes and in the selectors of pods that run in one pool only.
	PoolLabel = "example.com/pool"
	poolSmall = "small"
	poolLarge = "large"
	// poolNone is the pool of pods that fit nowhere.
	poolNone = "none"

	smallPool = 20 // one node in so many

	regions         = 2
	zonesOfRegion   = 3
	racksOfZone     = 10
	podsOfNode      = 250
	nodeCPU         = 64
	memoryOfCPU     = 8 // GiB
	mostLevels      = 16
	nodeNamePattern = "node-%05d"
)

// MakeNodes makes the nodes of a workload, Ready: dealt to regions, zones and racks in
// turn, so that the branches of a level differ by one node at most. A zone has its
// region's name in its own, and a rack its zone's.
func (w Workload) MakeNodes() []*corev1.Node {
	nodes := make([]*corev1.Node, 0, w.Nodes)
	for i := range w.Nodes {
		name := fmt.Sprintf(nodeNamePattern, i)
		region := "region-" + strconv.Itoa(i%regions+1)
		zone := region + "-zone-" + strconv.Itoa(i/regions%zonesOfRegion+1)
		rack := zone + "-rack-" + strconv.Itoa(i/(regions*zonesOfRegion)%racksOfZone+1)
		capacity := w.capacity(i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyRegion: region, corev1.LabelTopologyZone: zone,
				RackLabel: rack, PoolLabel: pool(i, w.Nodes), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			}},
			Status: corev1.NodeStatus{
				Capacity: capacity.DeepCopy(), Allocatable: capacity.DeepCopy(),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Benchmark"}},
			},
		}
		if w.DeepNodes {
			for _, key := range DeepLevels {
				node.Labels[key] = "common"
			}
			node.Labels[DeepLevels[0]] = fmt.Sprintf("machine-%05d", i)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// DeepLevels are the node labels of the most levels that a pod can ask for: one that no two
// nodes have alike, and below it others that divide nothing any more.
var DeepLevels = deepLevels()

func deepLevels() []string {
	keys := []string{"example.com/machine"}
	for i := 2; i <= mostLevels; i++ {
		keys = append(keys, fmt.Sprintf("example.com/part-%02d", i))
	}
	return keys
}

// pool takes the first nodes for the small pool: being dealt in turn, they are of all zones.
func pool(i, nodes int) string {
	if i < max(nodes/smallPool, 1) {
		return poolSmall
	}
	return poolLarge
}

// Admits reports whether the workload's pods may run on the node.
func (w Workload) Admits(node *corev1.Node) bool {
	return !w.Selective || node.Labels[PoolLabel] == poolSmall
}
