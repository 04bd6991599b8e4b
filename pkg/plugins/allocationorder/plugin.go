// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/tenants"
	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// ErrReasonPartition is the reason of a node that is not of the pod's partition, or lacks a trait.
const ErrReasonPartition = "node(s) were not of the partition of the pod's allocation, or lacked its traits"

// Name is the plugin's name in a profile.
const Name = "AllocationOrder"

// AllocationOrder is the plugin.
type AllocationOrder struct {
	handle  fwk.Handle
	tenants *tenants.Tenants
	pods    corelisters.PodLister
	budgets policylisters.PodDisruptionBudgetLister

	// What follows is not locked: only PostFilter touches it, and the scheduler runs that for one pod at a time.

	// failed are the pods for which nobody can make way, in the order of a version. What other profiles find depends on their filters.
	failed  eviction.Failed
	version uint64
	// unevictable are the pods that the API server did not let go.
	unevictable map[types.UID]unevictable
}

var (
	_ fwk.QueueSortPlugin          = &AllocationOrder{}
	_ fwk.PreEnqueuePlugin         = &AllocationOrder{}
	_ fwk.PreFilterPlugin          = &AllocationOrder{}
	_ fwk.FilterPlugin             = &AllocationOrder{}
	_ fwk.PostFilterPlugin         = &AllocationOrder{}
	_ fwk.PodGroupPostFilterPlugin = &AllocationOrder{}
	_ fwk.ReservePlugin            = &AllocationOrder{}
	_ fwk.EnqueueExtensions        = &AllocationOrder{}
	_ fwk.SignPlugin               = &AllocationOrder{}
)

// New makes the plugin. It has no arguments.
func New(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if args != nil {
		return nil, fmt.Errorf("args of plugin %s: it takes none, got %T: remove its pluginConfig", Name, args)
	}
	known, err := tenants.For(ctx, handle)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return newOver(known, handle), nil
}

// newOver makes the plugin over tenants that are known.
func newOver(known *tenants.Tenants, handle fwk.Handle) *AllocationOrder {
	register()
	return &AllocationOrder{
		handle: handle, tenants: known, unevictable: make(map[types.UID]unevictable),
		pods:    handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		budgets: handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister(),
	}
}

// Name returns the plugin's name.
func (pl *AllocationOrder) Name() string { return Name }

// SignPod signs a pod by its allocation, which decides on which nodes it may run.
func (pl *AllocationOrder) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	claims, _ := pl.tenants.Claims()
	claim, known := claims.Of(pod)
	switch {
	case !known:
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("namespace %q is not known yet", pod.Namespace))
	case claim.Allocation == nil:
		return nil, nil
	}
	return []fwk.SignFragment{{Key: Name, Value: claim.Allocation.Name}}, nil
}
