// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Levels are the levels that a pod is placed over, and who says so.
type Levels struct {
	// List must not be altered.
	List   []level.Level
	Source Source
	// Policy is the one that says so, nil for another source.
	Policy *Policy
	// Selector is that of the first constraint, or for a pod that stands alone that of its Services: the pods that it selects
	// are counted. It is nil for others.
	Selector *Selector
	// ScaleDown is what is to be left when some pods are removed, by the pod's policy; "" where that says nothing.
	ScaleDown placementv1alpha1.ScaleDown
	// key is that of the list before it was put in order, "" where it is not written down.
	key string
}

// InOrder are the levels in the order in which a pod is placed over them.
func (l Levels) InOrder(list []level.Level) Levels {
	l = l.WithKey()
	l.List = list
	return l
}

// WithKey are the levels with their key written down: it is asked for several times a pod.
func (l Levels) WithKey() Levels {
	l.key = l.Key()
	return l
}

// Source is who says over which levels a pod is placed.
type Source int

const (
	// FromDefaults is the profile, for pods that ask for nothing.
	FromDefaults Source = iota
	// FromAnnotation is the pod's PlacementAnnotation.
	FromAnnotation
	// FromPolicy is the policy that governs the pod.
	FromPolicy
	// FromConstraints are the pod's own ScheduleAnyway topology spread constraints.
	FromConstraints
)

// InAnyOrder reports whether the order of the list says nothing: that of constraints has no meaning to
// Kubernetes, and tools that patch manifests change it. Their levels are ordered by nesting.Sort.
func (l Levels) InAnyOrder() bool { return l.Source == FromConstraints }

// Key is the same for levels that place alike.
func (l Levels) Key() string {
	switch {
	case l.key != "":
		return l.key
	case l.InAnyOrder():
		return "in any order: " + level.Format(l.List)
	}
	return level.Format(l.List)
}

// LevelsOf resolves the levels a pod asks for, in order of precedence: the policy that governs the pod, if it overrides; the
// placement annotation; the pod's own
// ScheduleAnyway topology spread constraints; the policy, nil for none; the defaults. The first
// of these that says anything says all.
//
// An error quotes what cannot be read and says what is allowed. Nothing is skipped
// silently: a level that is not understood would be a spread that is not kept.
func LevelsOf(pod *corev1.Pod, policy *Policy, defaults []level.Level) (Levels, error) {
	byPolicy := func() (Levels, error) {
		if policy == nil {
			return Levels{}, nil
		}
		levels, err := policy.Levels()
		return Levels{List: levels, Source: FromPolicy, Policy: policy}, err
	}
	if policy != nil && policy.Overrides() {
		if levels, err := byPolicy(); err != nil || len(levels.List) > 0 {
			return levels, err
		}
	}
	if text, ok := pod.Annotations[PlacementAnnotation]; ok {
		levels, err := level.Parse(text)
		if err != nil {
			return Levels{}, fmt.Errorf("annotation %s: %w", PlacementAnnotation, err)
		}
		return Levels{List: levels, Source: FromAnnotation}, nil
	}
	levels, selector, err := softConstraints(pod)
	if err != nil {
		return Levels{}, fmt.Errorf("topologySpreadConstraints: %w", err)
	}
	if len(levels) > 0 {
		return Levels{List: levels, Source: FromConstraints, Selector: selector}, nil
	}
	if levels, err := byPolicy(); err != nil || len(levels.List) > 0 {
		return levels, err
	}
	return Levels{List: defaults}, nil
}

// softConstraints reads a pod's ScheduleAnyway constraints as levels. Their maxSkew has no meaning
// here: a level is always as even as it can be. A constraint whose selector does
// not select the pod itself is about other pods, and is no level. Nor is one whose key no node can have, or one after
// as many as a list of levels may have. Ignored names them.
//
// Where constraints have several selectors, the first one says which pods are counted over all levels.
func softConstraints(pod *corev1.Pod) (levels []level.Level, first *Selector, err error) {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		selector, err := selectorOf(pod, c)
		if err != nil {
			return nil, nil, fmt.Errorf("constraint over %q: %w", c.TopologyKey, err)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		// kube-scheduler spreads such a pod by its other constraints, so that to refuse it would be worse.
		if len(levels) == level.MaxLevels || !isLevel(c) {
			continue
		}
		first = cmp.Or(first, selector)
		levels = append(levels, levelOver(c))
	}
	return levels, first, level.Validate(levels)
}

// levelOver is a constraint as a level.
func levelOver(c *corev1.TopologySpreadConstraint) level.Level {
	return level.Level{Strategy: level.Spread, Property: level.Property{Label: c.TopologyKey}, NodesWithoutKey: level.LastResort}
}

// isLevel reports whether a constraint can be a level. The API server takes any key that is not empty.
func isLevel(c *corev1.TopologySpreadConstraint) bool { return levelOver(c).Validate() == nil }

// AsksForLevels reports that a pod says itself over which levels it is placed, whether that can be read or not.
func AsksForLevels(pod *corev1.Pod) bool {
	if _, ok := pod.Annotations[PlacementAnnotation]; ok {
		return true
	}
	levels, _, err := softConstraints(pod)
	return err != nil || len(levels) > 0
}
