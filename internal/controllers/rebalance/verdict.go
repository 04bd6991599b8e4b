// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"hash/maphash"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// again is the time after which a workload is looked at anew although nothing has changed that is in its sum: room may have come.
const again = 30 * time.Second

// verdict is that no pod of a workload need be moved, or can be. It is kept so that a cluster in which nothing happens costs nothing: a look at a
// workload is a look at all nodes.
type verdict struct {
	sum  uint64
	even bool
	at   time.Time
}

// holds reports that a verdict is still one, for a workload with such a sum.
func (v verdict) holds(sum uint64, now time.Time) bool {
	return v.sum == sum && (v.even || now.Sub(v.at) < again)
}

// seed is that of all sums. They are not kept beyond the process.
var seed = maphash.MakeSeed()

// sumOf tells nodes apart by what decides where pods should be.
func sumOf(nodes []*corev1.Node) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(texts ...string) {
		for _, t := range texts {
			_, _ = h.WriteString(t)
			_ = h.WriteByte(0)
		}
	}
	for _, n := range nodes {
		write(n.Name, string(n.UID), clusterview.Leaving(n), clusterview.Soft(n), n.Status.Allocatable.Cpu().String(), n.Status.Allocatable.Memory().String())
		if clusterview.Unready(n) {
			write("not ready")
		}
		for _, t := range n.Spec.Taints {
			write(t.Key, t.Value, string(t.Effect))
		}
		labels := uint64(0)
		for key, value := range n.Labels {
			labels += maphash.String(seed, key+"="+value)
		}
		maphash.WriteComparable(&h, labels)
	}
	return h.Sum64()
}

// sum tells states of a workload apart: where its own pods are, and what the nodes are.
func (w *deployed) sum(c *cluster) uint64 {
	pods := maphash.String(seed, level.Format(w.Levels))
	for _, p := range w.Pods {
		pods += maphash.String(seed, p.Spec.NodeName)
	}
	return pods ^ c.sum
}
