// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preassignedfirst

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in a profile.
const Name = "PreassignedFirst"

// PreassignedFirst is the plugin. It keeps nothing. It refuses and ranks no nodes,
// so that there is no pod to sign and no event to wait for.
type PreassignedFirst struct{}

var _ fwk.QueueSortPlugin = &PreassignedFirst{}

// New makes the plugin. It has no arguments.
func New(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &PreassignedFirst{}, nil
}

// Name returns the plugin's name.
func (pl *PreassignedFirst) Name() string { return Name }
