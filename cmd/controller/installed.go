// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// asking is the time between two questions whether the kind is installed.
const asking = 5 * time.Second

// installed waits until the kind PlacementPolicy is served, or the context ends. A controller started
// without it would give up after two minutes, and be started again, for ever.
func installed(ctx context.Context, mapper meta.RESTMapper) (bool, error) {
	kind := placementv1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy")
	logger := ctrl.Log.WithName("setup")
	said := false
	err := wait.PollUntilContextCancel(ctx, asking, true, func(context.Context) (bool, error) {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !said {
			said = true
			logger.Info("Waiting for the kind PlacementPolicy", "reason", err.Error())
		}
		return err == nil, nil
	})
	if ctx.Err() != nil {
		return false, nil //nolint:nilerr // terminated, which is no failure
	}
	return err == nil, err
}
