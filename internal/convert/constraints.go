// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Constraints converts the ScheduleAnyway topology spread constraints of a pod template into levels. They come in the order in which the
// template lists them, hosts last.
func Constraints(name, kind string, pod *corev1.Pod) (Converted, error) {
	c := Converted{Name: name, Kind: kind}
	levels, err := clusterview.LevelsOf(pod, nil, nil)
	if err != nil {
		return c, err
	}
	switch levels.Source {
	case clusterview.FromAnnotation:
		c.Notes = append(c.Notes, fmt.Sprintf("It has the annotation %s already.", clusterview.PlacementAnnotation))
	case clusterview.FromConstraints:
		list := slices.Clone(levels.List)
		slices.SortStableFunc(list, func(a, b level.Level) int { return cmp.Compare(hostsLast(&a), hostsLast(&b)) })
		c.Annotations = map[string]string{clusterview.PlacementAnnotation: level.Format(list)}
		if len(list) > 1 {
			c.Notes = append(c.Notes, "The annotation keeps the order of its levels: put the coarser key first. It counts the pods of one owner, and not what the selectors select.")
		}
		c.Notes = append(c.Notes, "It need not be converted: with Espalier's schedulerName these constraints are read as levels, the coarser key first in whatever order they are listed.")
		c.Notes = append(c.Notes, clusterview.Ignored(pod, levels)...)
	case clusterview.FromPolicy, clusterview.FromDefaults:
		c.Notes = append(c.Notes, "It has no ScheduleAnyway constraint that selects its own pods.")
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		if one := &pod.Spec.TopologySpreadConstraints[i]; one.WhenUnsatisfiable == corev1.DoNotSchedule {
			c.Notes = append(c.Notes, fmt.Sprintf("The constraint over %q with DoNotSchedule stays what it is.", one.TopologyKey))
		}
	}
	return c, nil
}

// hostsLast is 1 for a level over hosts, below which no other decides anything, and 0 for all others.
func hostsLast(l *level.Level) int {
	if l.Property.Label == corev1.LabelHostname {
		return 1
	}
	return 0
}
