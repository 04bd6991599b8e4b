// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	// maxNamed bounds the pods that are beyond a reservation and are named.
	maxNamed = 10
	// maxReason bounds, in bytes, why a pod waits.
	maxReason = 1000
)

// statuses are those of all Partitions and Allocations in one order.
type statuses struct {
	order *allocations.Order
	nodes []*corev1.Node
	now   metav1.Time
}

// queueOf is the queue of a partition, nil if it is not accepted.
func (s *statuses) queueOf(p *allocations.Partition) *allocations.Queue {
	for _, q := range s.order.Queues {
		if q.Partition == p {
			return q
		}
	}
	return nil
}

// ofPartition is the status of a partition, which was another one.
func (s *statuses) ofPartition(p *allocations.Partition, was *placementv1alpha1.PartitionStatus) *placementv1alpha1.PartitionStatus {
	out := &placementv1alpha1.PartitionStatus{ObservedGeneration: p.Generation, Conditions: was.Conditions}
	q := s.queueOf(p)
	if q != nil {
		var running, waiting int32
		for i := range q.Entries {
			if q.Entries[i].Pod.Placed {
				running++
			} else {
				waiting++
			}
		}
		out.Nodes, out.RunningPods, out.WaitingPods = new(int32(q.Nodes)), &running, &waiting
		out.Capacity, out.Reserved = q.List(q.Size), q.List(q.Reserved)
	}
	s.conditions(&out.Conditions, p.Generation, s.partitionConditions(p, q))
	return out
}

// ofAllocation is the status of an allocation, which was another one.
func (s *statuses) ofAllocation(a *allocations.Allocation, was *placementv1alpha1.AllocationStatus) *placementv1alpha1.AllocationStatus {
	out := &placementv1alpha1.AllocationStatus{ObservedGeneration: a.Generation, Conditions: was.Conditions}
	p, _, err := s.order.PartitionOf(a)
	if err == nil {
		s.count(out, a, s.queueOf(p))
	}
	s.conditions(&out.Conditions, a.Generation, s.allocationConditions(a))
	return out
}

// count fills in what the pods of an allocation come to.
func (s *statuses) count(out *placementv1alpha1.AllocationStatus, a *allocations.Allocation, q *allocations.Queue) {
	var running, waiting, reserved int32
	var used allocation.Vector
	for i := range q.Entries {
		e := &q.Entries[i]
		if e.Allocation != a {
			continue
		}
		position := int32(i + 1)
		if out.FirstPosition == nil {
			out.FirstPosition = &position
		}
		out.LastPosition = &position
		if e.Reserved {
			reserved++
		}
		if e.Pod.Placed {
			running++
			used = used.Plus(e.Pod.Demand)
			if !e.Reserved {
				// The last of the order is the first to leave.
				out.Beyond = append([]placementv1alpha1.PodAtPosition{at(e, position)}, out.Beyond[:min(len(out.Beyond), maxNamed-1)]...)
			}
			continue
		}
		if waiting++; out.Next == nil {
			out.Next = &placementv1alpha1.WaitingPod{PodAtPosition: at(e, position), Message: syntax.CutTo(allocations.Place{Queue: q, Index: i}.Waits(), maxReason)}
		}
	}
	out.RunningPods, out.WaitingPods, out.ReservedPods = &running, &waiting, &reserved
	out.Used = q.List(used)
	out.UtilizationPercent = percent(used, q, a)
}

func at(e *allocations.Entry, position int32) placementv1alpha1.PodAtPosition {
	return placementv1alpha1.PodAtPosition{Namespace: e.Object.Namespace, Name: e.Object.Name, Position: position}
}

// percent is how much of what is reserved is used, of the resource of which that is most. It is nil where nothing is reserved.
func percent(used allocation.Vector, q *allocations.Queue, a *allocations.Allocation) (most *int32) {
	for i, name := range q.Resources {
		if reserved := a.Reserved[name]; reserved > 0 {
			of := int32(min(math.MaxInt32, 100*float64(used.At(i))/float64(reserved)))
			if most == nil || of > *most {
				most = &of
			}
		}
	}
	return most
}
