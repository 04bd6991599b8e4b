// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	askAnnotation    = Prefix + "stages-wanted"
	answerAnnotation = Prefix + "stages-seen"

	settleLimit = time.Minute // a busy machine has kwok answer after 20 s
	nudgePeriod = 200 * time.Millisecond
)

// settle returns when kwok acts on every change of stages made before the call.
//
// kwok reads stages through a watch and does not say how far it is. Worse, it caches
// them under the newest version the watch has delivered, which can be newer than what
// it has taken in: a change may stay unseen until the next one. So we make another
// change, a stage that answers a question put to the node in an annotation. Stages
// are delivered in order and cached together: when the answer is there, so is all
// that was written before the question. Every nudge alters the question's stage
// too, so that a stale cache is thrown away. On a busy machine kwok may be one stage behind each time it looks at the
// node. So a stage answers whatever question the node has, and any answer will do: each is of a stage from after the changes.
func settle(ctx context.Context, kube kubernetes.Interface, stages dynamic.Interface, node string) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	name := "settle." + node
	defer cleanUp(ctx, kube, stages, node, name)
	asked := make(map[string]bool)
	err := wait.PollUntilContextCancel(ctx, nudgePeriod, true, func(ctx context.Context) (bool, error) {
		token := string(uuid.NewUUID())
		asked[token] = true
		if err := put(ctx, stages, questionStage(name, node, token)); err != nil {
			return false, err
		}
		return ask(ctx, kube, node, token, asked)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("kwok did not answer for node %q within %s: is the control plane up and the node not stopped? %s", node, settleLimit, leaseState(ctx, kube, node))
	}
	return err
}

// leaseState says who holds the lease of a node: kwok acts on nothing else.
func leaseState(ctx context.Context, kube kubernetes.Interface, node string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	lease, err := kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Sprintf("Its lease cannot be read: %v", err)
	}
	return fmt.Sprintf("Its lease is held by %q, and was renewed at %s for %d s.",
		ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Format(time.TimeOnly), ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))
}

// questionStage answers any question of the node with a token.
func questionStage(name, node, token string) Stage {
	return Stage{
		Name: name, Kind: "Node", Weight: 1,
		Match: []Match{
			{JQ: ".metadata.name", Operator: "In", Values: []string{node}},
			{JQ: fmt.Sprintf(".metadata.annotations[%q]", askAnnotation), Operator: "Exists"},
		},
		Metadata: fmt.Sprintf("annotations: {%q: %q}", answerAnnotation, token),
	}
}

// ask puts the question to the node and waits a moment for the answer, to this question or to any that was asked before. The stage may
// reach kwok after the node does, and then nothing happens: the caller asks anew.
func ask(ctx context.Context, kube kubernetes.Interface, node, token string, asked map[string]bool) (bool, error) {
	answered := false
	for range 3 {
		if err := annotateNode(ctx, kube, node, map[string]any{askAnnotation: token}); err != nil {
			return false, err
		}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, nudgePeriod, true, func(ctx context.Context) (bool, error) {
			object, err := kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			answered = asked[object.Annotations[answerAnnotation]]
			return answered, nil
		})
		if answered || (err != nil && !errors.Is(err, context.DeadlineExceeded)) {
			return answered, err
		}
		// The same value again would be no change and so no event.
		if err := annotateNode(ctx, kube, node, map[string]any{askAnnotation: nil}); err != nil {
			return false, err
		}
	}
	return false, nil
}

// cleanUp leaves neither question nor answer. Its own failure is not the caller's:
// what is left over asks nothing of anybody.
func cleanUp(ctx context.Context, kube kubernetes.Interface, stages dynamic.Interface, node, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	_ = remove(ctx, stages, name)
	_ = annotateNode(ctx, kube, node, map[string]any{askAnnotation: nil, answerAnnotation: nil})
}

func annotateNode(ctx context.Context, kube kubernetes.Interface, node string, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
