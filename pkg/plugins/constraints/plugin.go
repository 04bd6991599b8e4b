// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
)

// ErrReasonConstraints is the reason of a node on which some constraint does not hold.
const ErrReasonConstraints = "node(s) didn't match the pod's constraints"

// Name is the plugin's name in a profile.
const Name = "Constraints"

// Constraints is the plugin. It keeps nothing between cycles.
type Constraints struct{ nodes corelisters.NodeLister }

var (
	_ fwk.PreFilterPlugin   = &Constraints{}
	_ fwk.FilterPlugin      = &Constraints{}
	_ fwk.EnqueueExtensions = &Constraints{}
	_ fwk.SignPlugin        = &Constraints{}
)

// New makes the plugin, which takes no arguments.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if obj != nil {
		return nil, fmt.Errorf("args of plugin %s: it takes none, got %T: remove its pluginConfig", Name, obj)
	}
	nodes := handle.SharedInformerFactory().Core().V1().Nodes()
	if err := refusal.WaitingOf(ctx, handle).OnNodeUpdate(nodes.Informer(), addressesChanged, suits); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Constraints{nodes: nodes.Lister()}, nil
}

// Name returns the plugin's name.
func (pl *Constraints) Name() string { return Name }

// SignPod signs a pod by its constraints, whatever words they are in.
func (pl *Constraints) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	constraints, err := clusterview.Constraints(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	return []fwk.SignFragment{{Key: clusterview.ConstraintsAnnotation, Value: constraint.Format(constraints)}}, nil
}
