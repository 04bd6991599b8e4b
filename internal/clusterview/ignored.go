// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Ignored says what of a pod's ScheduleAnyway constraints has no effect on where it is placed over such levels, a
// sentence each. What a constraint leaves open is not among it.
func Ignored(pod *corev1.Pod, levels Levels) []string {
	var ignored []string
	if _, ok := pod.Annotations[PlacementAnnotation]; ok && levels.Source == FromPolicy {
		ignored = append(ignored, fmt.Sprintf("The annotation %s is ignored, because %s overrides it.", PlacementAnnotation, levels.Policy))
	}
	read := 0        // constraints that are levels, or would be if the pod's own were looked at
	var first string // the selector that is counted by
	if levels.Selector != nil {
		first = levels.Selector.String()
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		say := func(format string, args ...any) {
			ignored = append(ignored, fmt.Sprintf("The constraint over %q ", c.TopologyKey)+fmt.Sprintf(format, args...)+".")
		}
		switch selector, err := selectorOf(pod, c); {
		case levels.Source == FromAnnotation:
			say("is ignored, because the annotation %s says over what the pod is spread", PlacementAnnotation)
			continue
		case levels.Source == FromPolicy && levels.Policy.Overrides():
			say("is ignored, because %s overrides it", levels.Policy)
			continue
		case err != nil:
			continue // the pod is refused for it
		case !selector.Matches(labels.Set(pod.Labels)):
			say("does not select the pod itself, and is no level")
			continue
		case !isLevel(c):
			say("is no level: this is no label key, so that no node has it")
			continue
		case read == level.MaxLevels:
			say("is no level: a pod has %d at most", level.MaxLevels)
			continue
		case selector.String() != first:
			say("has a selector of its own: the pods that the first constraint selects are counted at all levels")
		}
		read++
		if c.MaxSkew > 1 {
			say("has maxSkew %d, which means nothing here: a level is as even as it can be", c.MaxSkew)
		}
		if p := c.NodeAffinityPolicy; p != nil && *p == corev1.NodeInclusionPolicyHonor {
			say("has nodeAffinityPolicy %s, which means nothing here: pods count wherever they run", *p)
		}
		if p := c.NodeTaintsPolicy; p != nil && *p == corev1.NodeInclusionPolicyHonor {
			say("has nodeTaintsPolicy %s, which means nothing here: pods count wherever they run", *p)
		}
	}
	return ignored
}
