// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister lists nothing: the plugin refuses no pod, so none waits for it.
// Without this method pods would be thought to wait for every event there is.
func (pl *FaultyNode) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}
