// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// Place is where a pod is in the order.
type Place struct {
	*Queue
	Index int
}

// Entry is that of the pod.
func (p Place) Entry() *Entry { return &p.Entries[p.Index] }

// String says where that is, for people.
func (p Place) String() string {
	return fmt.Sprintf("position %d of %d in partition %q, allocation %q", p.Index+1, len(p.Entries), p.Partition.Name, p.Entry().Allocation.Name)
}

// Why says why the pod must not be tried, nil if it may.
func (p Place) Why() error {
	switch e := p.Entry(); {
	case e.Class == allocation.Capped && e.Pod.Priority == 0:
		return fmt.Errorf("no pod of priority 0 runs in allocation %q, which has a maxUtilizationPercent: give it a priority of 1 or more: %s", e.Allocation.Name, p)
	case e.Class == allocation.Capped:
		return fmt.Errorf("allocation %q has as many pods before it as its maxUtilizationPercent lets run: %s", e.Allocation.Name, p)
	case e.Class == allocation.StandsBy:
		name, size, _ := e.Allocation.Group(e.Object)
		return fmt.Errorf("identity group %q has no identity left, all %d are held: %s", name, size, p)
	}
	return nil
}

// Waits says why a pod that has no node waits, for people.
func (p Place) Waits() string {
	if err := p.Why(); err != nil {
		return err.Error()
	}
	if message, tried := p.Entry().Refusal(); tried {
		return fmt.Sprintf("%s: %s", p, cmp.Or(message, "it was tried, and found no place"))
	}
	return fmt.Sprintf("it has not been tried yet: %s", p)
}

// MustNotRun says why a pod is evicted if it runs, for people.
func (p Place) MustNotRun() string {
	if e := p.Entry(); e.Surplus {
		name, size, _ := e.Allocation.Group(e.Object)
		return fmt.Sprintf("identity %d is none that group %q has for it: it is of %d pods; %s", IdentityOf(e.Object), name, size, p)
	}
	return fmt.Sprint(p.Why())
}

// Refusal is what the scheduler has said of the pod when it was tried last. It is false for one that was not tried.
func (e *Entry) Refusal() (message string, tried bool) {
	for i := range e.Object.Status.Conditions {
		if c := &e.Object.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message, true
		}
	}
	return "", false
}
