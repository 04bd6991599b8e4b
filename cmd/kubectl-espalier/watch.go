// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/progress"
)

// A drawing reads the whole cluster. The next one begins leastPause later at the earliest, in a large cluster after timesPause the time that this one
// took, and mostPause later at the latest: on a machine that is slow itself a drawing would stay for minutes else.
const (
	leastPause = 2 * time.Second
	timesPause = 5
	mostPause  = 30 * time.Second
	// listTimeout is for how long the first drawing waits until the pods are known whose changes are followed.
	listTimeout = 10 * time.Second
)

// watch draws, and again whenever pods of a namespace have changed, until it is interrupted. What looks as before is not drawn again. An
// error after the first drawing is drawn too: it may pass.
func (c *common) watch(cmd *cobra.Command, namespace string, draw func(io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	changed, err := c.changes(ctx, cancel, namespace)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ended(ctx)
	}
	out := cmd.OutOrStdout()
	var shown []byte
	for {
		begun := time.Now()
		drawn := drawing{colours: hasColours(out)}
		failed := false
		switch err := draw(&drawn); {
		case ctx.Err() != nil:
			return ended(ctx)
		case err != nil && shown == nil:
			return err
		case err != nil:
			failed = true
			drawn.Reset()
			fmt.Fprintf(&drawn, "error: %v; trying again\n", err)
		}
		if !bytes.Equal(shown, drawn.Bytes()) {
			shown = drawn.Bytes()
			if progress.IsTerminal(out) {
				fmt.Fprint(out, "\x1b[H\x1b[2J")
			} else {
				fmt.Fprintf(out, "at %s\n", time.Now().Format(time.TimeOnly))
			}
			if _, err := out.Write(shown); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-time.After(pause(time.Since(begun))):
		}
		if failed {
			continue // no pod need change for it to go well
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-changed:
		}
	}
}

// pause is how long a drawing stays that took so long.
func pause(took time.Duration) time.Duration {
	return min(max(leastPause, timesPause*took), mostPause)
}

// ended is why watching has ended: nil if it was interrupted.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); apierrors.IsForbidden(err) {
		return fmt.Errorf("--watch: %w", err)
	}
	return nil
}

// changes returns what has something in it when pods of a namespace have changed since it was last emptied. It waits until all of them are
// known, unless that fails or takes long. Where they may not be watched it gives up.
func (c *common) changes(ctx context.Context, giveUp context.CancelCauseFunc, namespace string) (<-chan struct{}, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything()), &corev1.Pod{}, 0)
	// Only that they change is of interest here.
	if err := informer.SetTransform(func(obj any) (any, error) {
		if pod, is := obj.(*corev1.Pod); is {
			obj = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
		}
		return obj, nil
	}); err != nil {
		return nil, err
	}
	listing, listed := context.WithTimeout(ctx, listTimeout)
	defer listed()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			giveUp(err)
		}
		listed() // the drawing says what is wrong
	}); err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, inInitialList bool) {
			if !inInitialList {
				note()
			}
		},
		UpdateFunc: func(_, _ any) { note() }, DeleteFunc: func(any) { note() },
	}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	// What changes before all pods are known is no change to the informer: a drawing that had read the pods before would stay.
	if !cache.WaitForCacheSync(listing.Done(), informer.HasSynced) {
		go func() {
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				note()
			}
		}()
	}
	return changed, nil
}
