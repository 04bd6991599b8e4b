// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// Under makes the plugin know these policies.
func (pl *DomainLimits) Under(p *policies.Policies) { pl.policies = p }

// Limits are those that hold for a pod.
func (pl *DomainLimits) Limits(pod *corev1.Pod) ([]limit.Limit, error) { return pl.limits(pod) }
