// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Control breaks and mends the nodes of a running cluster, through its API alone.
type Control struct {
	kube   kubernetes.Interface
	stages dynamic.Interface
}

// NewControl returns a Control of the cluster behind config.
func NewControl(config *rest.Config) (*Control, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	stages, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Control{kube, stages}, nil
}

// Select lists the names of the nodes with the labels of a selector; that there are
// none is an error.
func (c *Control) Select(ctx context.Context, selector string) ([]string, error) {
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if len(nodes.Items) == 0 {
		return nil, errors.New("no node of this cluster has these labels")
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names, nil
}

// Fail makes pods on node fail as kind says, from the moment Fail returns: pods with
// the given labels (nil means all) that start there, and with running also those that
// run there already. It takes the place of an earlier failure of the node.
func (c *Control) Fail(ctx context.Context, node string, kind FailureKind, labels map[string]string, running bool) error {
	if err := c.managed(ctx, node); err != nil {
		return err
	}
	if err := remove(ctx, c.stages, failureStageName(node)+againSuffix); err != nil {
		return c.explain(err)
	}
	for _, stage := range kind.onNode(node, labels, running) {
		if err := put(ctx, c.stages, stage); err != nil {
			return c.explain(err)
		}
	}
	if err := settle(ctx, c.kube, c.stages, node); err != nil {
		return err
	}
	if !running {
		return nil
	}
	return c.touchPods(ctx, node)
}

// Heal ends the failing: pods that start on node run, and those that hang there in
// Pending or CrashLoopBackOff run too. Pods that have ended stay ended.
func (c *Control) Heal(ctx context.Context, node string) error {
	if err := c.managed(ctx, node); err != nil {
		return err
	}
	for _, name := range []string{failureStageName(node), failureStageName(node) + againSuffix} {
		if err := remove(ctx, c.stages, name); err != nil {
			return c.explain(err)
		}
	}
	if err := settle(ctx, c.kube, c.stages, node); err != nil {
		return err
	}
	return c.touchPods(ctx, node)
}

// managed reports whether kwok has the node in its hands.
func (c *Control) managed(ctx context.Context, node string) error {
	if _, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
		return c.explain(err)
	}
	lease, err := c.lease(ctx, node)
	if err != nil {
		return notFoundIsNil(err)
	}
	if Stopped(lease) {
		return fmt.Errorf("node %q is stopped: start it first (devcluster start-node %s)", node, node)
	}
	return nil
}

// touchedAnnotation is changed to make kwok look at an object again.
const touchedAnnotation = Prefix + "touched"

// touchPods makes kwok look again at the pods of node that have not ended: it decides
// only when an object changes.
func (c *Control) touchPods(ctx context.Context, node string) error {
	pods, err := c.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return c.explain(err)
	}
	stamp := time.Now().UTC().Format(time.RFC3339Nano)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchedAnnotation, stamp)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		_, err := c.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if notFoundIsNil(err) != nil {
			return fmt.Errorf("touching pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// explain turns what the API server says into what the user can do about it.
func (c *Control) explain(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && apierrors.IsNotFound(err) {
		if details := status.Status().Details; details != nil && details.Kind == "nodes" {
			return fmt.Errorf("no node %q in this cluster", details.Name)
		}
		return fmt.Errorf("this cluster has no stages; was it made by devcluster? (%w)", err)
	}
	return err
}
