// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// Wake touches, until ctx ends, the nodes that kwok has taken up and not started: it has forgotten their last change, as Nodes says, and
// acts on the next.
func Wake(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes().Lister()
	ctx, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	var before map[string]string
	return wait.PollUntilContextCancel(ctx, nudgePeriod, false, func(ctx context.Context) (bool, error) {
		list, err := nodes.List(labels.Everything())
		if err != nil {
			return false, err
		}
		var asleep []string
		asleep, before = unstarted(list, before)
		for _, name := range asleep {
			// One that fails is found asleep again.
			_ = annotateNode(ctx, client, name, map[string]any{touchedAnnotation: time.Now().UTC().Format(time.RFC3339Nano)})
		}
		return false, nil
	})
}

// unstarted names the nodes that are taken up and have not changed since the last look. It returns, for the next look, the versions of all
// that are taken up.
func unstarted(nodes []*corev1.Node, before map[string]string) (asleep []string, now map[string]string) {
	now = make(map[string]string)
	for _, node := range nodes {
		if node.Status.Phase != takenUp {
			continue
		}
		now[node.Name] = node.ResourceVersion
		if before[node.Name] == node.ResourceVersion {
			asleep = append(asleep, node.Name)
		}
	}
	return asleep, now
}
