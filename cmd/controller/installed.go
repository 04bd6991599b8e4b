// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/informersync"
)

// asking is the time between two questions whether the kinds are installed.
const asking = 5 * time.Second

// installed waits until all kinds are served, or the context ends. A controller started
// without one would give up after two minutes, and be started again, for ever. What it waits
// for is named among the informers that are not filled: there will be one.
func installed(ctx context.Context, mapper meta.RESTMapper, kinds []string, informers *informersync.Tracker) (bool, error) {
	logger := ctrl.Log.WithName("setup")
	for _, name := range kinds {
		kind := placementv1alpha1.SchemeGroupVersion.WithKind(name)
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		informers.Fail(resource, informersync.NoAnswer, "no answer")
		said := false
		err := wait.PollUntilContextCancel(ctx, asking, true, func(context.Context) (bool, error) {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if meta.IsNoMatchError(err) {
				informers.Fail(resource, string(metav1.StatusReasonNotFound), err.Error()+": apply the CRDs of this release")
			} else if err != nil {
				informers.Fail(resource, informersync.NoAnswer, err.Error())
			}
			if err != nil && !said {
				said = true
				logger.Info("Waiting for a kind: apply the CRDs of this release", "kind", name, "reason", err.Error())
			}
			return err == nil, nil
		})
		informers.Forget(resource)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // terminated, which is no failure
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
