// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector is which pods of a namespace count for a pod: as its constraints say, or its Services. It is nil where neither
// say.
type Selector struct {
	labels.Selector
	Namespace string
	// Labels are values that a pod must have to be selected, as far as the selector says it in this way.
	Labels map[string]string
}

// Workload is what the selected pods are together.
func (s *Selector) Workload() Workload { return Workload{s.Namespace, KindSelector, s.String()} }

// selectorOf reads the selector of a constraint, with what matchLabelKeys adds to it. One that is nil
// selects nothing, an empty one everything.
//
// Most name labels alone. The API server has looked at those, and to do so again was an eighth
// of all PreFilter, for every pod and each of its levels. (It lets an invalid value stand that was
// there before it looked. No label can have that value, so that the constraint is about other pods.)
func selectorOf(pod *corev1.Pod, c *corev1.TopologySpreadConstraint) (*Selector, error) {
	s := c.LabelSelector
	if s == nil {
		return &Selector{labels.Nothing(), pod.Namespace, nil}, nil
	}
	is := &Selector{labels.ValidatedSetSelector(s.MatchLabels), pod.Namespace, s.MatchLabels}
	if len(s.MatchExpressions) > 0 {
		var err error
		if is.Selector, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return nil, fmt.Errorf("labelSelector: %w", err)
		}
		is.Labels = maps.Clone(s.MatchLabels)
		for _, e := range s.MatchExpressions {
			if e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 {
				is.ask(e.Key, e.Values[0])
			}
		}
	}
	err := is.match(pod, c.MatchLabelKeys)
	return is, err
}

// match adds the pod's own values of keys. The API server has added them to the pods that it was given since 1.34. A second time they change nothing, unless
// the pod's labels have changed since: then the constraint no longer selects the pod, and is no level.
func (s *Selector) match(pod *corev1.Pod, keys []string) error {
	for _, key := range keys {
		value, ok := pod.Labels[key]
		if !ok {
			continue
		}
		requirement, err := labels.NewRequirement(key, selection.In, []string{value})
		if err != nil {
			return fmt.Errorf("matchLabelKeys: %w", err)
		}
		s.Selector = s.Selector.Add(*requirement)
		s.Labels = maps.Clone(s.Labels) // which may be the pod's
		s.ask(key, value)
	}
	return nil
}

// ask notes a value that a pod must have.
func (s *Selector) ask(key, value string) {
	if s.Labels == nil {
		s.Labels = make(map[string]string)
	}
	s.Labels[key] = value
}
