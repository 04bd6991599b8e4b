// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/espalier-scheduler/espalier/test/perf/load"
)

const (
	// selectedNode is how a scheduler says where a claim is needed, and bindCompleted how it
	// is told that the claim is bound.
	selectedNode  = "volume.kubernetes.io/selected-node"
	bindCompleted = "pv.kubernetes.io/bind-completed"
)

// provision plays the controllers of volumes until ctx ends: a claim whose node is known gets
// a volume at once.
func (w *World) provision(ctx context.Context, group *errgroup.Group) error {
	claims := w.client.CoreV1().PersistentVolumeClaims(namespace)
	now, err := claims.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("watching claims in %s: %w", namespace, err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return claims.Watch(ctx, o) },
	})
	if err != nil {
		return fmt.Errorf("watching claims in %s: %w", namespace, err)
	}
	zones := map[string]string{}
	for _, node := range w.nodes {
		zones[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	group.Go(func() error {
		defer watcher.Stop()
		makers, making := errgroup.WithContext(ctx)
		makers.SetLimit(Creators)
		seen := map[string]bool{}
		for event := range watcher.ResultChan() {
			claim, is := event.Object.(*corev1.PersistentVolumeClaim)
			if !is || claim.Annotations[selectedNode] == "" || seen[claim.Name] {
				continue
			}
			seen[claim.Name] = true
			makers.Go(func() error { return w.bindClaim(making, claim, zones[claim.Annotations[selectedNode]]) })
		}
		err := makers.Wait()
		if ctx.Err() != nil {
			return nil // All pods are bound, or something else went wrong.
		}
		return errors.Join(err, errors.New("the watch of claims ended: no more volumes are made"))
	})
	return nil
}

// bindClaim makes the volume of a claim and binds it.
func (w *World) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, zone string) error {
	volume := load.Volume(claim, zone)
	if _, err := w.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating volume %s: %w", volume.Name, err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}},"spec":{"volumeName":%q}}`, bindCompleted, volume.Name)
	if _, err := w.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("binding claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// unprotected is the patch by which an object goes that waits for controllers to let it go.
const unprotected = `{"metadata":{"finalizers":null}}`

// clearVolumes removes the claims and the volumes.
func (w *World) clearVolumes(ctx context.Context) error {
	claims, volumes := w.client.CoreV1().PersistentVolumeClaims(namespace), w.client.CoreV1().PersistentVolumes()
	claimed, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing claims in %s: %w", namespace, err)
	}
	err = w.each(ctx, "claims removed", len(claimed.Items), func(ctx context.Context, i int) error {
		name := claimed.Items[i].Name
		if _, err := claims.Patch(ctx, name, types.MergePatchType, []byte(unprotected), metav1.PatchOptions{}); err != nil {
			return err
		}
		return claims.Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil {
		return err
	}
	made, err := volumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing volumes: %w", err)
	}
	return w.each(ctx, "volumes removed", len(made.Items), func(ctx context.Context, i int) error {
		name := made.Items[i].Name
		if _, err := volumes.Patch(ctx, name, types.MergePatchType, []byte(unprotected), metav1.PatchOptions{}); err != nil {
			return err
		}
		return volumes.Delete(ctx, name, metav1.DeleteOptions{})
	})
}
