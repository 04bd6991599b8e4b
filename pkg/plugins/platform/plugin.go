// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// ErrReasonPlatform is the reason of a node of another platform, or without a platform.
const ErrReasonPlatform = "node(s) didn't match the pod's platform"

// Name is the plugin's name in a profile.
const Name = "Platform"

// Platform is the plugin. It keeps nothing between cycles.
type Platform struct{}

var (
	_ fwk.PreFilterPlugin   = &Platform{}
	_ fwk.FilterPlugin      = &Platform{}
	_ fwk.EnqueueExtensions = &Platform{}
	_ fwk.SignPlugin        = &Platform{}
)

// New makes the plugin, which takes no arguments.
func New(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	if obj != nil {
		return nil, fmt.Errorf("args of plugin %s: it takes none, got %T: remove its pluginConfig", Name, obj)
	}
	return &Platform{}, nil
}

// Name returns the plugin's name.
func (pl *Platform) Name() string { return Name }

// SignPod signs a pod by what it wants, whatever words it is in.
func (pl *Platform) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	wish, err := clusterview.PlatformWish(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	// No name of a system has a blank.
	return []fwk.SignFragment{{Key: clusterview.PlatformsAnnotation, Value: wish.OS + " " + platform.Format(wish.Listed)}}, nil
}
