// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// The reasons of nodes. The first two are followed by the port, as in "80/tcp".
const (
	// ErrReasonTaken is that of a node on which a pod holds the port.
	ErrReasonTaken = "node(s) didn't have free host port "
	// ErrReasonReserved is that of a node which holds the port itself.
	ErrReasonReserved = "node(s) reserved host port "
	// ErrReasonMalformed is that of a node of which it is not known what it reserves.
	ErrReasonMalformed = "node(s) had a malformed annotation " + clusterview.ReservedHostPortsAnnotation
)

// Name is the plugin's name in a profile.
const Name = "HostPorts"

// HostPorts is the plugin.
type HostPorts struct {
	// reserved is held by every node.
	reserved hostport.Set
	holders  holders
}

var (
	_ fwk.PreFilterPlugin   = &HostPorts{}
	_ fwk.FilterPlugin      = &HostPorts{}
	_ fwk.EnqueueExtensions = &HostPorts{}
	_ fwk.SignPlugin        = &HostPorts{}
)

// New makes the plugin from *config.HostPortsArgs.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.HostPortsArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.HostPortsArgs, got %T", Name, obj)
	}
	reserved, errs := validation.HostPorts(field.NewPath("reserved"), args.Reserved)
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(reporter(klog.FromContext(ctx))); err != nil {
		return nil, fmt.Errorf("plugin %s: watching the annotations of nodes: %w", Name, err)
	}
	return &HostPorts{reserved: reserved}, nil
}

// Name returns the plugin's name.
func (pl *HostPorts) Name() string { return Name }

// SignPod signs a pod by its host ports, with protocol and address. In-tree signs the
// numbers alone, and so takes pods with 53/tcp and 53/udp for alike.
func (pl *HostPorts) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	var texts []string
	for _, p := range hostPorts(pod) {
		texts = append(texts, p.String())
	}
	return []fwk.SignFragment{{Key: Name, Value: strings.Join(texts, ",")}}, nil
}
