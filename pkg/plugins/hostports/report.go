// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// reporter logs annotations that cannot be read, when they are written and not when
// they are met: a filter meets them thousands of times, or never.
func reporter(logger klog.Logger) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if node, ok := obj.(*corev1.Node); ok {
				report(logger, node)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*corev1.Node)
			after, alsoOK := newObj.(*corev1.Node)
			if ok && alsoOK && reservation(before) != reservation(after) {
				report(logger, after)
			}
		},
	}
}

func report(logger klog.Logger, node *corev1.Node) {
	if _, err := clusterview.ReservedHostPorts(node); err != nil {
		logger.Error(err, "No pod with host ports is placed on the node until its annotation is corrected", "plugin", Name, "node", klog.KObj(node))
	}
}

// reservation is the annotation as it is written; none reads like an empty one.
func reservation(node *corev1.Node) string {
	return node.Annotations[clusterview.ReservedHostPortsAnnotation]
}
