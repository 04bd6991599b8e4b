// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// Queue is the order of a partition.
type Queue struct {
	Partition string `json:"partition"`
	Nodes     int    `json:"nodes"`
	Running   int    `json:"running"`
	Waiting   int    `json:"waiting"`
	// Pods are all of its allocations, in their order.
	Pods []QueuedPod `json:"pods"`
}

// QueuedPod is a pod at its position.
type QueuedPod struct {
	Position   int    `json:"position"`
	Namespace  string `json:"namespace"`
	Pod        string `json:"pod"`
	Allocation string `json:"allocation"`
	Priority   int    `json:"priority"`
	Rank       int    `json:"rank"`
	// Reserved says that it is within what its allocation reserves.
	Reserved bool `json:"reserved"`
	// Before and After are how far the pods up to it are beyond all reservations, in percent of those and the partition's size. They are
	// nil for pods of priority 0, and if the partition has no nodes.
	Before *float64 `json:"before,omitempty"`
	After  *float64 `json:"after,omitempty"`
	// Node is where it runs, "" if it waits.
	Node string `json:"node,omitempty"`
	// Leaves counts the running pods from the end: that with 1 is the first to leave if capacity is short.
	Leaves int `json:"leaves,omitempty"`
	// Why says why it waits, or is evicted.
	Why string `json:"why,omitempty"`
}

// decide are the kinds that decide which pods are in an order.
var decide = []string{"partitions", "allocations", "namespaces"}

// Queues returns the order of a partition, or of all if it is "". There is none if it could not be read what decides about it.
func (c *Cluster) Queues(partition string) ([]Queue, error) {
	for _, what := range c.Unread {
		if kind, _, _ := strings.Cut(what, ":"); slices.Contains(decide, kind) {
			return nil, fmt.Errorf("%s could not be read, and decide about the order: ask for the right to list %s", kind, strings.Join(decide, ", "))
		}
	}
	all, order := []Queue{}, c.order()
	for _, q := range order.Queues {
		if partition == "" || q.Partition.Name == partition {
			all = append(all, queueOf(q))
		}
	}
	if len(all) == 0 && partition != "" {
		return nil, fmt.Errorf("there is no Partition %q that is accepted: `kubectl get partitions` lists them", partition)
	}
	if len(all) == 0 && len(order.Partitions) > 0 {
		return nil, errors.New("no Partition is accepted: see the condition Accepted of each, which `kubectl get partitions -o yaml` shows")
	}
	return all, nil
}

// order puts the pods of all partitions in order, as the scheduler does.
func (c *Cluster) order() *allocations.Order {
	partitions, read := readTenants(c.Snapshot)
	namespaces := make(map[string]labels.Set)
	for _, n := range snapshot.Of[*corev1.Namespace](c.Snapshot) {
		namespaces[n.Name] = n.Labels
	}
	claims := allocations.NewTree(partitions, read).Claims(func(name string) (labels.Set, bool) { set, known := namespaces[name]; return set, known })
	return claims.Arrange(allocations.Cluster{
		Nodes: snapshot.Of[*corev1.Node](c.Snapshot), Pods: snapshot.Of[*corev1.Pod](c.Snapshot),
		Schedules: func(name string) bool { return slices.Contains(c.Profiles(), name) },
	})
}

func readTenants(s *snapshot.Snapshot) (partitions []*allocations.Partition, all []*allocations.Allocation) {
	for _, object := range s.Tenants {
		if object.GetKind() == "Partition" {
			partitions = append(partitions, allocations.DecodePartition(object))
		} else {
			all = append(all, allocations.DecodeAllocation(object))
		}
	}
	return partitions, all
}

func queueOf(q *allocations.Queue) Queue {
	out := Queue{Partition: q.Partition.Name, Nodes: q.Nodes, Pods: make([]QueuedPod, len(q.Entries))}
	for i := len(q.Entries) - 1; i >= 0; i-- {
		e := &q.Entries[i]
		p := QueuedPod{
			Position: i + 1, Namespace: e.Object.Namespace, Pod: e.Object.Name, Allocation: e.Allocation.Name, Priority: e.Pod.Priority, Rank: e.Rank,
			Reserved: e.Reserved, Node: e.Object.Spec.NodeName,
		}
		if e.Class != allocation.Last {
			p.Before, p.After = percent(e.Before), percent(e.After)
		}
		place := allocations.Place{Queue: q, Index: i}
		switch {
		case p.Node == "":
			out.Waiting++
			p.Why = place.Waits()
		case e.MustNotRun():
			p.Why = "it is evicted: " + place.MustNotRun()
			fallthrough
		default:
			out.Running++
			p.Leaves = out.Running
		}
		out.Pods[i] = p
	}
	return out
}

// percent is a utilization in percent, nil for one that is beyond all bounds.
func percent(utilization float64) *float64 {
	if p := 100 * utilization; !math.IsInf(p, 0) {
		return &p
	}
	return nil
}

// orderOf says where a pod is in the order of its partition, and why it waits if it does. It is "" for one of no allocation. Held says that
// it is not tried because of that.
func (c *Cluster) orderOf(pod *corev1.Pod) (says string, held bool) {
	order := c.order()
	if place, ok := order.Place(pod); ok {
		if pod.Spec.NodeName == "" {
			return place.Waits(), place.Why() != nil
		}
		if e := place.Entry(); e.MustNotRun() {
			return "it is evicted: " + place.MustNotRun(), false
		}
		return place.String(), false
	}
	if err := order.Held[pod.UID]; err != nil {
		return "it is in no order: " + err.Error(), pod.Spec.NodeName == ""
	}
	return "", false
}
