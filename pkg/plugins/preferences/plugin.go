// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// ErrReasonMissing is the reason of a node that lacks the property of a level
// which leaves such nodes out.
const ErrReasonMissing = "node(s) didn't have a property that the pod's placement requires"

// Name is the plugin's name in a profile.
const Name = "Preferences"

// Preferences is the plugin. It keeps no state between cycles except the policies,
// which it shares with the other plugins.
type Preferences struct {
	defaults []level.Level
	policies *policies.Policies
	services corelisters.ServiceLister
}

var (
	_ fwk.PreFilterPlugin   = &Preferences{}
	_ fwk.FilterPlugin      = &Preferences{}
	_ fwk.EnqueueExtensions = &Preferences{}
	_ fwk.SignPlugin        = &Preferences{}
)

// New makes the plugin from *config.PreferencesArgs.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.PreferencesArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.PreferencesArgs, got %T", Name, obj)
	}
	defaults, errs := validation.Levels(field.NewPath("defaultLevels"), args.DefaultLevels)
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	known, err := policies.For(ctx, handle)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Preferences{defaults, known, handle.SharedInformerFactory().Core().V1().Services().Lister()}, nil
}

// Name returns the plugin's name.
func (pl *Preferences) Name() string { return Name }

// SignPod signs a pod by its levels: pods with different levels get different
// signatures. A DaemonSet's pod is signed as if it had no levels, because its levels
// leave out no node.
func (pl *Preferences) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	levels, err := pl.levels(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	if clusterview.Daemon(pod) {
		levels = clusterview.Levels{}
	}
	return []fwk.SignFragment{{Key: clusterview.PlacementAnnotation, Value: levels.Key()}}, nil
}

// levels resolves the pod's levels by what is known of policies at this moment.
func (pl *Preferences) levels(pod *corev1.Pod) (clusterview.Levels, error) {
	policy, err := pl.policies.Placing(pod)
	if err != nil {
		return clusterview.Levels{}, err
	}
	return pl.under(policy, pod)
}

// under returns a pod's levels under the policy that it is placed by, nil for none. Of a pod whose node its controller
// chose, such as a DaemonSet's, only the annotation and the constraints are read. If neither constraints nor an owner
// say which pods are spread together, the Services that select the pod do. The policy's scaleDown holds wherever the
// levels come from.
func (pl *Preferences) under(policy *clusterview.Policy, pod *corev1.Pod) (clusterview.Levels, error) {
	if clusterview.Daemon(pod) {
		return clusterview.LevelsOf(pod, nil, nil)
	}
	levels, err := clusterview.LevelsOf(pod, policy, pl.defaults)
	if err == nil && levels.Selector == nil {
		levels.Selector, err = clusterview.OfServices(pod, pl.services)
	}
	if policy != nil {
		levels.ScaleDown = policy.ScaleDown
	}
	return levels, err
}
