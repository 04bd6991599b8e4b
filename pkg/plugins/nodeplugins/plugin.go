// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/refusal"
)

const (
	// ErrReasonDriver is the reason of a node whose CSINode lacks a driver, or that has none.
	ErrReasonDriver = "node(s) didn't have a CSI driver that the pod's volumes need"
	// ErrReasonHandler is the reason of a node that reports its runtime handlers, and not the pod's.
	ErrReasonHandler = "node(s) didn't have the runtime handler of the pod's RuntimeClass"
)

// Name is the plugin's name in a profile.
const Name = "NodePlugins"

// NodePlugins is the plugin. It keeps nothing between cycles.
type NodePlugins struct {
	needed   resolver
	csiNodes fwk.CSIManager
	nodes    corelisters.NodeLister
}

var (
	_ fwk.PreFilterPlugin   = &NodePlugins{}
	_ fwk.FilterPlugin      = &NodePlugins{}
	_ fwk.EnqueueExtensions = &NodePlugins{}
	_ fwk.SignPlugin        = &NodePlugins{}
)

// New makes the plugin, which takes no arguments.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if obj != nil {
		return nil, fmt.Errorf("args of plugin %s: it takes none, got %T: remove its pluginConfig", Name, obj)
	}
	factory := handle.SharedInformerFactory()
	nodes := factory.Core().V1().Nodes()
	pl := &NodePlugins{needed: newResolver(factory), csiNodes: handle.SharedCSIManager(), nodes: nodes.Lister()}
	waiting := refusal.WaitingOf(ctx, handle)
	if err := waiting.OnNodeUpdate(nodes.Informer(), handlersChanged, pl.suits); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	if err := wakeOnClass(factory.Node().V1().RuntimeClasses().Informer(), waiting); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return pl, nil
}

// Name returns the plugin's name.
func (pl *NodePlugins) Name() string { return Name }

// SignPod signs a pod by what its needs are resolved from, and not by what they
// are: that changes when a claim is bound, and the pod does not.
func (pl *NodePlugins) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{
		{Key: fwk.VolumesSignerName, Value: fwk.VolumesSigner(pod)},
		{Key: Name, Value: className(pod)},
	}, nil
}
