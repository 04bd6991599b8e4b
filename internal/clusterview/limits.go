// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// Limits resolves the domain limits of a pod, in order of precedence: the policy that governs it, if it overrides; its annotation;
// the policy, nil if none governs it; the defaults. The first of these that
// says anything says all. An error quotes what cannot be read and says what is allowed.
func Limits(pod *corev1.Pod, policy *Policy, defaults []limit.Limit) ([]limit.Limit, error) {
	if policy != nil && policy.Overrides() {
		if limits, err := policy.DomainLimits(); err != nil || len(limits) > 0 {
			return limits, err
		}
	}
	if text, ok := pod.Annotations[DomainLimitsAnnotation]; ok {
		limits, err := limit.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", DomainLimitsAnnotation, err)
		}
		return limits, nil
	}
	if policy != nil {
		if limits, err := policy.DomainLimits(); err != nil || len(limits) > 0 {
			return limits, err
		}
	}
	return defaults, nil
}

// AppendDomains appends a node's property at each limit. It appends because filters ask
// for every node: they have a buffer, and a slice for each would be their main cost.
func AppendDomains(values []placement.Value, node *corev1.Node, limits []limit.Limit) []placement.Value {
	for _, l := range limits {
		values = append(values, Value(node, l.Property))
	}
	return values
}
