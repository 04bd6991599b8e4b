// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/inventory"
	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/kwok"
)

const pollInterval = 50 * time.Millisecond

// waitAPIServer returns when the API server says that it is ready to serve.
func waitAPIServer(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, func(ctx context.Context) bool {
		status := 0
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		return status == http.StatusOK
	})
}

// waitNamespace returns when pods can be made in the default namespace: a pod needs
// the service account that a controller makes there.
func waitNamespace(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, func(ctx context.Context) bool {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// probeNode exists for a moment only, so that there is a node for kwok to take up
// even in a cluster without any, or with none that is not stopped.
const probeNode = "devcluster-probe"

// waitTakenUp returns when kwok takes up nodes.
func waitTakenUp(ctx context.Context, client kubernetes.Interface) error {
	probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: probeNode}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := client.CoreV1().Nodes().Create(ctx, probe, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating node %q: %w", probeNode, err)
	}
	err := poll(ctx, func(ctx context.Context) bool {
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, probeNode, metav1.GetOptions{})
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("waiting for kwok to take up a node: %w", err)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, probeNode, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting node %q: %w", probeNode, err)
	}
	return nil
}

func poll(ctx context.Context, done func(context.Context) bool) error {
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		return done(ctx), nil
	})
}

// waitNodes returns when every node that is not stopped is Ready and in kwok's
// hands. Both are asked: on a kept folder nodes read Ready from the time before.
func waitNodes(ctx context.Context, client kubernetes.Interface, progress func(done, all int, what string)) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes().Lister()
	leases := factory.Coordination().V1().Leases().Lister().Leases(corev1.NamespaceNodeLease)
	factory.Core().V1().Nodes().Informer()
	factory.Coordination().V1().Leases().Informer()
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	ready, all := 0, 0
	err := poll(ctx, func(context.Context) bool {
		ready, all = 0, 0
		list, err := nodes.List(labels.Everything())
		if err != nil {
			return false
		}
		for _, node := range list {
			lease, err := leases.Get(node.Name)
			if err == nil && kwok.Stopped(lease) {
				continue
			}
			all++
			if err == nil && inventory.Ready(node) {
				ready++
			}
		}
		progress(ready, all, "nodes Ready")
		return ready == all
	})
	if err != nil {
		return ready, fmt.Errorf("%d of %d nodes became Ready: %w", ready, all, err)
	}
	return ready, nil
}
