// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

const (
	// ErrReasonFull is the reason of a node with a domain that has no room left.
	ErrReasonFull = "node(s) were in a domain with as many of the workload's pods as its domain limits allow"
	// ErrReasonMissing is the reason of a node that lacks the property of a limit.
	ErrReasonMissing = "node(s) didn't have a property that the pod's domain limits name"
)

// Name is the plugin's name in a profile.
const Name = "DomainLimits"

// DomainLimits is the plugin.
type DomainLimits struct {
	handle     fwk.Handle
	defaults   []limit.Limit
	policies   *policies.Policies
	identifier *clusterview.Identifier
	// index is not locked: only PreFilter touches it, and the scheduler runs that
	// for one pod at a time.
	index *podcount.Index
}

var (
	_ fwk.PreFilterPlugin     = &DomainLimits{}
	_ fwk.PreFilterExtensions = &DomainLimits{}
	_ fwk.FilterPlugin        = &DomainLimits{}
	_ fwk.EnqueueExtensions   = &DomainLimits{}
	_ fwk.SignPlugin          = &DomainLimits{}
)

// New makes the plugin from *config.DomainLimitsArgs.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.DomainLimitsArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.DomainLimitsArgs, got %T", Name, obj)
	}
	defaults, errs := validation.Limits(field.NewPath("defaultLimits"), args.DefaultLimits)
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	identifier, err := clusterview.WatchingIdentifier(handle.SharedInformerFactory().Apps().V1().ReplicaSets())
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	known, err := policies.For(ctx, handle)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &DomainLimits{
		handle:     handle,
		defaults:   defaults,
		policies:   known,
		identifier: identifier,
		index:      podcount.NewIndex(identifier),
	}, nil
}

// Name returns the plugin's name.
func (pl *DomainLimits) Name() string { return Name }

// limits returns the limits of a pod as far as policies are known now. To those of a
// DaemonSet's pod only its own word belongs: its node was chosen by its controller.
func (pl *DomainLimits) limits(pod *corev1.Pod) ([]limit.Limit, error) {
	policy, err := pl.policies.Placing(pod)
	if err != nil {
		return nil, err
	}
	return pl.under(policy, pod)
}

func (pl *DomainLimits) under(policy *clusterview.Policy, pod *corev1.Pod) ([]limit.Limit, error) {
	if clusterview.Daemon(pod) {
		return clusterview.Limits(pod, nil, nil)
	}
	return clusterview.Limits(pod, policy, pl.defaults)
}

// SignPod signs the pods that have no limits, all alike. Equal signatures say that what
// fits one pod fits the next, and under a limit each pod takes room from the next.
func (pl *DomainLimits) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	limits, err := pl.limits(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	if len(limits) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "every pod that is placed under domain limits takes room from the next")
	}
	return nil, nil
}
