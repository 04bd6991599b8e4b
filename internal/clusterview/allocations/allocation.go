// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// defaultPriority is that of pods whose assignment says none.
const defaultPriority = 1

// maxAmount bounds what may be reserved of a resource, in its unit. It is more memory and storage than a cluster of 5,000 nodes has, and sums of
// such amounts do not overflow: see allocation.Vector.
const maxAmount = 1 << 60

// Allocation is an Allocation, read.
type Allocation struct {
	Object
	Partition, Parent string
	// Reserved is in the units of amountOf. It has no resource of which it is none.
	Reserved         map[corev1.ResourceName]int64
	rank, adjustment int
	maxUtilization   float64
	traits           labels.Selector
	assignments      []assignment
	// groups have the sizes of identity groups.
	groups map[string]int
}

// assignment is which pods are of an allocation.
type assignment struct {
	namespaces, pods labels.Selector
	priority         int
}

// ReadAllocation reads an Allocation. One of which something cannot be read still claims the pods that its assignments select, or that have
// the labels which they name if their selectors cannot be read: they wait, and are not placed as if it were not there.
func ReadAllocation(in *placementv1alpha1.Allocation) *Allocation {
	a := &Allocation{
		Object: objectOf(&in.ObjectMeta), Partition: in.Spec.Partition, Parent: in.Spec.Parent,
		Reserved: make(map[corev1.ResourceName]int64), rank: or(in.Spec.Rank, allocation.DefaultRank), adjustment: or(in.Spec.RankAdjustment, 0),
		maxUtilization: float64(or(in.Spec.MaxUtilizationPercent, 0)) / 100, traits: labels.Everything(), groups: make(map[string]int),
	}
	if a.adjustment < 0 {
		a.refuse(fmt.Errorf("spec.rankAdjustment: %d: pods within the reservation must not come later than others; give a number from 0", a.adjustment))
		a.adjustment = 0
	}
	for _, name := range slices.Sorted(maps.Keys(in.Spec.Reserved)) {
		quantity := in.Spec.Reserved[name]
		if err := checkAmount(quantity, name); err != nil {
			a.refuse(fmt.Errorf("spec.reserved[%s]: %w", name, err))
			continue
		}
		if amount := amountOf(name, quantity); amount > 0 { // of none all other allocations would have to reserve some, to be within their reservation
			a.Reserved[name] = amount
		}
	}
	if len(in.Spec.Traits) > 0 {
		a.traits = a.selector("spec.traits", &metav1.LabelSelector{MatchLabels: in.Spec.Traits})
	}
	for i, as := range in.Spec.Assignments {
		its := assignment{namespaces: a.claiming(fmt.Sprintf("spec.assignments[%d].namespaceSelector", i), &as.NamespaceSelector), pods: labels.Everything(), priority: or(as.Priority, defaultPriority)}
		if as.PodSelector != nil {
			its.pods = a.claiming(fmt.Sprintf("spec.assignments[%d].podSelector", i), as.PodSelector)
		}
		if its.priority < 0 || its.priority > allocation.MaxPriority {
			a.refuse(fmt.Errorf("spec.assignments[%d].priority: %d: give a number from 0 to %d", i, its.priority, allocation.MaxPriority))
			its.priority = defaultPriority
		}
		a.assignments = append(a.assignments, its)
	}
	for _, g := range in.Spec.IdentityGroups {
		a.groups[g.Name] = max(0, or(g.Count, 0))
	}
	return a
}

// DecodeAllocation reads an Allocation as the API server gives it. One of which a field cannot be decoded is read without it, and is not
// accepted.
func DecodeAllocation(object *unstructured.Unstructured) *Allocation {
	in, err := decode[placementv1alpha1.Allocation](object)
	a := ReadAllocation(in)
	a.refuse(err)
	return a
}

func or(given *int32, other int) int {
	if given == nil {
		return other
	}
	return int(*given)
}

// amountOf is a quantity in the unit in which its resource is counted: thousandths of CPU, and whole numbers of all others.
func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// quantityOf is an amount as a quantity.
func quantityOf(name corev1.ResourceName, amount int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

func checkAmount(quantity resource.Quantity, name corev1.ResourceName) error {
	most := quantityOf(name, maxAmount)
	switch {
	case quantity.Sign() < 0:
		return fmt.Errorf("%s is negative: give an amount, or leave it out", quantity.String())
	case quantity.Cmp(most) > 0:
		return fmt.Errorf("%s is more than any cluster has: give %s at most", quantity.String(), most.String())
	}
	return nil
}
