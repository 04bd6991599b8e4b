// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/test/perf/load"
)

func (w *World) createAll(ctx context.Context, c Candidate) error {
	return w.each(ctx, "pods created", w.workload.Pods(), func(ctx context.Context, i int) error { return w.create(ctx, c, i) })
}

func (w *World) create(ctx context.Context, c Candidate, i int) error {
	pod := w.workload.MakePod(i, c.profile(), w.owners[w.workload.Group(i)])
	if w.workload.Claims {
		if _, err := w.client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, load.Claim(pod.Name), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating claim %s/%s: %w", namespace, pod.Name, err)
		}
	}
	if _, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", namespace, pod.Name, err)
	}
	return nil
}

// attack makes the pods of another tenant, who comes before all others.
func (w *World) attack(ctx context.Context, c Candidate) error {
	pods := w.workload.Attackers(c.profile())
	return w.each(ctx, "attackers created", len(pods), func(ctx context.Context, i int) error {
		_, err := w.client.CoreV1().Pods(attackNamespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
}

// clear removes the measured pods, those of an attack, and what they claimed.
func (w *World) clear(ctx context.Context) error {
	for _, name := range []string{namespace, attackNamespace} {
		if err := w.clearPods(ctx, name); err != nil {
			return err
		}
	}
	if !w.workload.Claims {
		return nil
	}
	return w.clearVolumes(ctx)
}

// clearPods removes the pods of a namespace. One by one, many at a time, because the API server
// deletes a collection in a single thread.
func (w *World) clearPods(ctx context.Context, namespace string) error {
	pods := w.client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing %s: %w", namespace, err)
	}
	return w.each(ctx, "pods removed", len(list.Items), func(ctx context.Context, i int) error {
		err := pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
		if apierrors.IsNotFound(err) { // churn had asked for it before
			return nil
		}
		return err
	})
}
