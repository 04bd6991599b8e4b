// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/notices"
)

// reasonUnreadable is the reason of the Event on a node whose end cannot be read.
const reasonUnreadable = "NodeEndUnreadable"

// report says in an Event of a node that its end cannot be read, when that is written and not when it is met: a filter meets it thousands of
// times, or never.
func report(handle fwk.Handle) error {
	given := notices.New(handle.EventRecorder())
	tell := func(obj any) {
		node, ok := obj.(*corev1.Node)
		if !ok {
			return
		}
		if _, err := clusterview.EndOf(node); err != nil {
			given.Give(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}, corev1.EventTypeWarning, reasonUnreadable,
				err.Error()+". No pod with a lease is placed on the node until it is mended.")
		}
	}
	_, err := handle.SharedInformerFactory().Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) },
	})
	if err != nil {
		return fmt.Errorf("watching the ends of nodes: %w", err)
	}
	return nil
}
